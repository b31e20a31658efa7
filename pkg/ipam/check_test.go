package ipam

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

func TestCheckNamesEveryContradiction(t *testing.T) {
	const fine = `
		10.0.0.11 0 used 1 web
		2001:db8::11 0 used 1 web
		10.0.0.12 0 cooling 1
		10.0.0.21 1 free 1`
	for _, tt := range []struct {
		name   string
		change func(*State)
		want   string
	}{
		{"nothing", func(*State) {}, "<nil>"},
		{"map without nftables", func(s *State) { s.Settings.Firewall = Iptables },
			"routing map needs nftables; use routing rule with iptables"},
		{"rule with iptables is fine", func(s *State) { s.Settings.Routing, s.Settings.Firewall = Rule, Iptables }, "<nil>"},
		{"a cool-down that ends before it starts", func(s *State) { s.Settings.CoolDown = -time.Second },
			"cool-down -1s: must not be negative"},
		{"no family", func(s *State) { s.Settings.Families = nil }, "families []: must be ipv4, ipv6 or both"},
		{"blocks that can't be", func(s *State) { s.Settings.V4Block, s.Settings.V6Block = 33, -1 },
			"blocks of /33: those of ipv4 are at most /32\nblocks of /-1: those of ipv6 are at most /128"},
		{"a family twice", func(s *State) { s.Settings.Families = []eni.Family{eni.IPv4, eni.IPv4} },
			"families [ipv4 ipv4]: must be ipv4, ipv6 or both"},
		{"an ENI that is wrong on its own", func(s *State) { s.ENIs[1].MTU = 1 },
			"eni eni-b: mtu 1: must be 576 to 65535"},
		{"two ENIs with one id", func(s *State) { s.ENIs[1].ID = "eni-a" },
			"eni eni-a: id, index 1 or device eth1 is another ENI's too"},
		{"two ENIs on one link", func(s *State) { s.ENIs[1].Device = "eth0" },
			"eni eni-b: id, index 1 or device eth0 is another ENI's too"},
		{"an address of an ENI that is not there", func(s *State) { s.Addresses[3].ENI = 7 },
			"address 10.0.0.21: its ENI 7 is not in the node state"},
		{"an address twice", func(s *State) { s.Addresses[2].Addr = s.Addresses[0].Addr },
			"address 10.0.0.11: is in the node state twice"},
		{"no address", func(s *State) { s.Addresses[3].Addr = netip.Addr{} },
			"address invalid IP: is not a plain IPv4 or IPv6 address"},
		{"an IPv4 address in IPv6 clothes", func(s *State) { s.Addresses[3].Addr = netip.MustParseAddr("::ffff:10.0.0.21") },
			"address ::ffff:10.0.0.21: is not a plain IPv4 or IPv6 address"},
		{"an address with a zone", func(s *State) { s.Addresses[3].Addr = netip.MustParseAddr("fe80::1%eth0") },
			"address fe80::1%eth0: is not a plain IPv4 or IPv6 address"},
		{"ENIs out of order", func(s *State) { s.Addresses[2], s.Addresses[3] = s.Addresses[3], s.Addresses[2] },
			"address 10.0.0.12: comes after addresses of a later ENI"},
		{"an address of another subnet", func(s *State) { s.Addresses[3].Addr = netip.MustParseAddr("10.0.1.21") },
			"address 10.0.1.21: is outside the subnet of its ENI eni-b"},
		{"an address of a range for pods is fine", func(s *State) {
			s.ENIs[1].Pods = []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}
			s.Addresses[3].Addr = netip.MustParseAddr("10.0.1.21")
		}, "<nil>"},
		{"an address of another ENI's range for pods", func(s *State) {
			s.ENIs[0].Pods = []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}
			s.Addresses[3].Addr = netip.MustParseAddr("10.0.1.21")
		}, "address 10.0.1.21: is outside the subnet of its ENI eni-b"},
		{"the gateway in the pool", func(s *State) { s.Addresses[3].Addr = netip.MustParseAddr("10.0.0.1") },
			"address 10.0.0.1: is an ENI's primary address or its gateway"},
		{"a free address with an owner", func(s *State) { o := owner("db"); s.Addresses[3].Owner = &o },
			"address 10.0.0.21: is free but pods/db/eth0 owns it"},
		{"a used address without", func(s *State) { s.Addresses[0].Owner = nil },
			"address 10.0.0.11: is used but nobody owns it"},
		{"an owner with two addresses of a family", func(s *State) { o := owner("web"); s.Addresses[3].State, s.Addresses[3].Owner = eni.Used, &o },
			"address 10.0.0.21: its owner pods/web/eth0 has 10.0.0.11 too"},
		{"several at once", func(s *State) { s.Settings.CoolDown, s.ENIs[0].MTU, s.Addresses[0].Owner = -1, 0, nil },
			"cool-down -1ns: must not be negative\neni eni-a: mtu 0: must be 576 to 65535\naddress 10.0.0.11: is used but nobody owns it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := nodeState(t, 2, fine, eni.IPv4, eni.IPv6)
			tt.change(s)
			if diff := cmp.Diff(tt.want, fmt.Sprint(s.Check())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMarkMaskIsEightBitsClearOfKubeProxy(t *testing.T) {
	for _, mask := range []uint32{DefaultMarkMask, 0xff, 0x3fc0, 0xff000000, 0xff0000, 0x1fe0000} {
		if err := ValidMarkMask(mask); err != nil {
			t.Error(err)
		}
	}
	for mask, want := range map[uint32]string{
		0:          "mark mask 0x00000000: must be eight bits in a row, like 0x000000ff",
		0x7f0000:   "mark mask 0x007f0000: must be eight bits in a row, like 0x000000ff",
		0x1ff0000:  "mark mask 0x01ff0000: must be eight bits in a row, like 0x000000ff",
		0xf0f0000:  "mark mask 0x0f0f0000: must be eight bits in a row, like 0x000000ff",
		0xffffffff: "mark mask 0xffffffff: must be eight bits in a row, like 0x000000ff",
		0xff00:     "mark mask 0x0000ff00: takes kube-proxy's bits 0x4000 and 0x8000",
		0x7f80:     "mark mask 0x00007f80: takes kube-proxy's bits 0x4000 and 0x8000",
	} {
		if diff := cmp.Diff(want, fmt.Sprint(ValidMarkMask(mask))); diff != "" {
			t.Error(diff)
		}
	}
}
