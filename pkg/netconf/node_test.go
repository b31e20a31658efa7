package netconf

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

func TestWhatTheKernelHoldsForANode(t *testing.T) {
	ruled := settings(func(s *ipam.Settings) { s.Routing = ipam.Rule })
	for _, tt := range []struct {
		name  string
		state ipam.State
		want  string
	}{
		{"one ENI: the system's own routing", ipam.State{Settings: settings(nil), ENIs: []eni.Interface{nic(0, true, false)},
			Addresses: usedBy("a", 0, "10.0.0.11")}, `
			sysctl net/ipv4/ip_forward=1
			sysctl net/ipv4/conf/eth0/rp_filter=2
			sysctl net/ipv4/conf/eth0/forwarding=1
			sysctl net/ipv4/conf/enic2649991064/rp_filter=1
			sysctl net/ipv4/conf/enic2649991064/forwarding=1
			sysctl net/ipv6/conf/enic2649991064/disable_ipv6=1
			link eth0 up
			link enic2649991064 up
			addr 10.0.0.10/24 dev eth0
			route default via 10.0.0.1 dev eth0 proto 69
			route 10.0.0.11 dev enic2649991064 table 100 proto 70 scope link
			rule 512: from all lookup 100 suppress_prefixlength 31 proto 70
			rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			neigh 10.0.0.11 lladdr 5e:14:7d:e6:dc:f4 dev enic2649991064 nud permanent`},
		{"three ENIs, map: not one rule a pod", ipam.State{Settings: settings(nil),
			ENIs:      []eni.Interface{nic(0, true, false), nic(1, true, false), nic(2, true, false)},
			Addresses: append(usedBy("a", 0, "10.0.0.11"), append(usedBy("b", 1, "10.0.1.21"), usedBy("c", 2, "10.0.2.21")...)...)}, `
			sysctl net/ipv4/ip_forward=1
			sysctl net/ipv4/conf/eth0/rp_filter=2
			sysctl net/ipv4/conf/eth0/forwarding=1
			sysctl net/ipv4/conf/eth1/rp_filter=2
			sysctl net/ipv4/conf/eth1/forwarding=1
			sysctl net/ipv4/conf/eth2/rp_filter=2
			sysctl net/ipv4/conf/eth2/forwarding=1
			sysctl net/ipv4/conf/enic2649991064/rp_filter=1
			sysctl net/ipv4/conf/enic2649991064/forwarding=1
			sysctl net/ipv6/conf/enic2649991064/disable_ipv6=1
			sysctl net/ipv4/conf/enia6014be7c6e/rp_filter=1
			sysctl net/ipv4/conf/enia6014be7c6e/forwarding=1
			sysctl net/ipv6/conf/enia6014be7c6e/disable_ipv6=1
			sysctl net/ipv4/conf/enif355d2c9256/rp_filter=1
			sysctl net/ipv4/conf/enif355d2c9256/forwarding=1
			sysctl net/ipv6/conf/enif355d2c9256/disable_ipv6=1
			link eth0 up
			link eth1 up
			link eth2 up
			link enic2649991064 up
			link enia6014be7c6e up
			link enif355d2c9256 up
			addr 10.0.0.10/24 dev eth0
			addr 10.0.1.10/24 dev eth1 noprefixroute
			addr 10.0.2.10/24 dev eth2 noprefixroute
			route default via 10.0.0.1 dev eth0 proto 69
			route 10.0.1.1 dev eth1 table 101 proto 69 scope link
			route default via 10.0.1.1 dev eth1 table 101 proto 69
			route 10.0.2.1 dev eth2 table 102 proto 69 scope link
			route default via 10.0.2.1 dev eth2 table 102 proto 69
			route 10.0.0.11 dev enic2649991064 table 100 proto 70 scope link
			route 10.0.1.21 dev enia6014be7c6e table 100 proto 70 scope link
			route 10.0.2.21 dev enif355d2c9256 table 100 proto 70 scope link
			rule 512: from all lookup 100 suppress_prefixlength 31 proto 70
			rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			rule 1536: from all fwmark 0x1/0xff lookup 101 proto 70
			rule 1537: from 10.0.1.10 lookup 101 proto 69
			rule 1536: from all fwmark 0x2/0xff lookup 102 proto 70
			rule 1537: from 10.0.2.10 lookup 102 proto 69
			neigh 10.0.0.11 lladdr 5e:14:7d:e6:dc:f4 dev enic2649991064 nud permanent
			neigh 10.0.1.21 lladdr fa:6d:1e:f0:ac:95 dev enia6014be7c6e nud permanent
			neigh 10.0.2.21 lladdr 52:28:68:11:c8:5a dev enif355d2c9256 nud permanent`},
		{"two ENIs of both families, rule: those of used addresses too", ipam.State{Settings: ruled,
			ENIs: []eni.Interface{nic(0, true, true), nic(1, true, true)},
			Addresses: append(append(usedBy("a", 0, "10.0.0.11"), usedBy("b", 1, "10.0.1.21", "2001:db8:0:1::21")...),
				eni.Address{Addr: used(1, "10.0.1.22")[0].Addr, ENI: 1})}, `
			sysctl net/ipv4/ip_forward=1
			sysctl net/ipv4/conf/eth0/rp_filter=2
			sysctl net/ipv4/conf/eth0/forwarding=1
			sysctl net/ipv6/conf/eth0/accept_ra=2
			sysctl net/ipv4/conf/eth1/rp_filter=2
			sysctl net/ipv4/conf/eth1/forwarding=1
			sysctl net/ipv6/conf/eth1/accept_ra=0
			sysctl net/ipv6/conf/all/forwarding=1
			sysctl net/ipv4/conf/enic2649991064/rp_filter=1
			sysctl net/ipv4/conf/enic2649991064/forwarding=1
			sysctl net/ipv6/conf/enic2649991064/disable_ipv6=1
			sysctl net/ipv4/conf/enia6014be7c6e/rp_filter=1
			sysctl net/ipv4/conf/enia6014be7c6e/forwarding=1
			sysctl net/ipv6/conf/enia6014be7c6e/accept_ra=0
			link eth0 up
			link eth1 up
			link enic2649991064 up
			link enia6014be7c6e up
			addr 10.0.0.10/24 dev eth0
			addr 2001:db8::10/64 dev eth0
			addr 10.0.1.10/24 dev eth1 noprefixroute
			addr 2001:db8:0:1::10/64 dev eth1 noprefixroute
			route default via 10.0.0.1 dev eth0 proto 69
			route default via fe80::1 dev eth0 proto 69
			route 10.0.1.1 dev eth1 table 101 proto 69 scope link
			route default via 10.0.1.1 dev eth1 table 101 proto 69
			route fe80::1 dev eth1 table 101 proto 69 scope link
			route default via fe80::1 dev eth1 table 101 proto 69
			route 10.0.0.11 dev enic2649991064 table 100 proto 70 scope link
			route 10.0.1.21 dev enia6014be7c6e table 100 proto 70 scope link
			route 2001:db8:0:1::21 dev enia6014be7c6e table 100 proto 70 scope link
			rule 512: from all lookup 100 suppress_prefixlength 31 proto 70
			rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			rule 512: from all lookup 100 suppress_prefixlength 127 proto 70
			rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			rule 1536: from all fwmark 0x1/0xff lookup 101 proto 70
			rule 1537: from 10.0.1.10 lookup 101 proto 69
			rule 1536: from all fwmark 0x1/0xff lookup 101 proto 70
			rule 1537: from 2001:db8:0:1::10 lookup 101 proto 69
			rule 1538: from 10.0.1.21 to 10.0.0.0/16 lookup 101 proto 69
			rule 1538: from 10.0.1.21 to 172.16.0.0/12 lookup 101 proto 69
			rule 1538: from 2001:db8:0:1::21 lookup 101 proto 69
			neigh 10.0.0.11 lladdr 5e:14:7d:e6:dc:f4 dev enic2649991064 nud permanent
			neigh 10.0.1.21 lladdr fa:6d:1e:f0:ac:95 dev enia6014be7c6e nud permanent
			neigh 2001:db8:0:1::21 lladdr fa:6d:1e:f0:ac:95 dev enia6014be7c6e nud permanent`},
		{"an IPv6 ENI without SNAT, marks in the low bits", ipam.State{Settings: settings(func(s *ipam.Settings) { s.SNAT, s.MarkMask = false, 0xff }),
			ENIs: []eni.Interface{nic(0, false, true), nic(1, false, true)}}, `
			sysctl net/ipv4/ip_forward=1
			sysctl net/ipv4/conf/eth0/rp_filter=2
			sysctl net/ipv6/conf/eth0/accept_ra=2
			sysctl net/ipv4/conf/eth1/rp_filter=2
			sysctl net/ipv6/conf/eth1/accept_ra=0
			sysctl net/ipv6/conf/all/forwarding=1
			link eth0 up
			link eth1 up
			addr 2001:db8::10/64 dev eth0
			addr 2001:db8:0:1::10/64 dev eth1 noprefixroute
			route default via fe80::1 dev eth0 proto 69
			route fe80::1 dev eth1 table 101 proto 69 scope link
			route default via fe80::1 dev eth1 table 101 proto 69
			rule 512: from all lookup 100 suppress_prefixlength 31 proto 70
			rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			rule 512: from all lookup 100 suppress_prefixlength 127 proto 70
			rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			rule 1536: from all fwmark 0x1/0xff lookup 101 proto 70
			rule 1537: from 2001:db8:0:1::10 lookup 101 proto 69`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(text(tt.want), NewNode(&tt.state).String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
