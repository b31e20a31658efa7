package netconf

import (
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

func TestWhatTheKernelHoldsForAPod(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings ipam.Settings
		eni      int
		addrs    []string
		mtu      int
		want     string
	}{
		{"IPv4 on a second ENI, map: not one rule", settings(nil), 1, []string{"10.0.1.21"}, 0, `
			link eniba3b32d3853 address be:1a:8c:65:f0:93 mtu 1500 peer eth0 address 82:b0:56:b6:fa:72 alias "default/web-0 pods/3f2a/eth0"
			sysctl net/ipv4/conf/eniba3b32d3853/rp_filter=1
			sysctl net/ipv4/conf/eniba3b32d3853/forwarding=1
			sysctl net/ipv6/conf/eniba3b32d3853/disable_ipv6=1
			route 10.0.1.21 dev eniba3b32d3853 table 100 proto 70 scope link
			neigh 10.0.1.21 lladdr 82:b0:56:b6:fa:72 dev eniba3b32d3853 nud permanent
			pod addr 10.0.1.21/32 dev eth0
			pod route 169.254.1.1 dev eth0 proto 69 scope link
			pod route default via 169.254.1.1 dev eth0 proto 69
			pod neigh 169.254.1.1 lladdr be:1a:8c:65:f0:93 dev eth0 nud permanent`},
		{"IPv6 alone, an MTU of its own", settings(nil), 0, []string{"2001:db8::21"}, 1280, `
			link eniba3b32d3853 address be:1a:8c:65:f0:93 mtu 1280 peer eth0 address 82:b0:56:b6:fa:72 alias "default/web-0 pods/3f2a/eth0"
			sysctl net/ipv4/conf/eniba3b32d3853/rp_filter=1
			sysctl net/ipv6/conf/eniba3b32d3853/accept_ra=0
			route 2001:db8::21 dev eniba3b32d3853 table 100 proto 70 scope link
			neigh 2001:db8::21 lladdr 82:b0:56:b6:fa:72 dev eniba3b32d3853 nud permanent
			pod addr 2001:db8::21/128 dev eth0
			pod route default via fe80::1 dev eth0 proto 69
			pod neigh fe80::1 lladdr be:1a:8c:65:f0:93 dev eth0 nud permanent`},
		{"both on a third ENI, rule", settings(func(s *ipam.Settings) { s.Routing = ipam.Rule }), 2, []string{"10.0.2.21", "2001:db8:0:2::21"}, 0, `
			link eniba3b32d3853 address be:1a:8c:65:f0:93 mtu 1500 peer eth0 address 82:b0:56:b6:fa:72 alias "default/web-0 pods/3f2a/eth0"
			sysctl net/ipv4/conf/eniba3b32d3853/rp_filter=1
			sysctl net/ipv4/conf/eniba3b32d3853/forwarding=1
			sysctl net/ipv6/conf/eniba3b32d3853/accept_ra=0
			route 10.0.2.21 dev eniba3b32d3853 table 100 proto 70 scope link
			route 2001:db8:0:2::21 dev eniba3b32d3853 table 100 proto 70 scope link
			rule 1538: from 10.0.2.21 to 10.0.0.0/16 lookup 102 proto 69
			rule 1538: from 10.0.2.21 to 172.16.0.0/12 lookup 102 proto 69
			rule 1538: from 2001:db8:0:2::21 lookup 102 proto 69
			neigh 10.0.2.21 lladdr 82:b0:56:b6:fa:72 dev eniba3b32d3853 nud permanent
			neigh 2001:db8:0:2::21 lladdr 82:b0:56:b6:fa:72 dev eniba3b32d3853 nud permanent
			pod addr 10.0.2.21/32 dev eth0
			pod addr 2001:db8:0:2::21/128 dev eth0
			pod route 169.254.1.1 dev eth0 proto 69 scope link
			pod route default via 169.254.1.1 dev eth0 proto 69
			pod route default via fe80::1 dev eth0 proto 69
			pod neigh 169.254.1.1 lladdr be:1a:8c:65:f0:93 dev eth0 nud permanent
			pod neigh fe80::1 lladdr be:1a:8c:65:f0:93 dev eth0 nud permanent`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ipam.Lease{Interface: nic(tt.eni, true, true), Addresses: used(tt.eni, tt.addrs...)}
			if diff := cmp.Diff(text(tt.want), NewPod(tt.settings, l, tt.mtu).String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// With SNAT only what goes to the VPC leaves through the ENI of the pod's address: the rest
// has the node's address. IPv6 is never translated.
func TestSourceRules(t *testing.T) {
	rule := func(change func(*ipam.Settings)) ipam.Settings {
		return settings(func(s *ipam.Settings) {
			s.Routing = ipam.Rule
			if change != nil {
				change(s)
			}
		})
	}
	for _, tt := range []struct {
		name     string
		settings ipam.Settings
		eni      int
		addr     string
		want     string
	}{
		{"map", settings(nil), 1, "10.0.1.21", ``},
		{"map, IPv6", settings(nil), 1, "2001:db8:0:1::21", ``},
		{"the primary ENI", rule(nil), 0, "10.0.0.11", ``},
		{"the primary ENI, IPv6", rule(nil), 0, "2001:db8::21", ``},
		{"SNAT", rule(nil), 3, "10.0.3.21", `
			1538: from 10.0.3.21 to 10.0.0.0/16 lookup 103 proto 69
			1538: from 10.0.3.21 to 172.16.0.0/12 lookup 103 proto 69`},
		{"SNAT, IPv6", rule(nil), 3, "2001:db8:0:3::21", `
			1538: from 2001:db8:0:3::21 lookup 103 proto 69`},
		{"no SNAT", rule(func(s *ipam.Settings) { s.SNAT = false }), 1, "10.0.1.21", `
			1538: from 10.0.1.21 lookup 101 proto 69`},
		{"SNAT for everything", rule(func(s *ipam.Settings) { s.VPC = nil }), 1, "10.0.1.21", ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := SourceRules(tt.settings, used(tt.eni, tt.addr)[0])
			if diff := cmp.Diff(text(tt.want), printed(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
