package netconf

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

func heldBy(addr string, index int, container string, kind eni.Kind) eni.Address {
	return eni.Address{Addr: netip.MustParseAddr(addr), ENI: index, State: eni.Used,
		Owner: &eni.Owner{Key: eni.Key{Network: "pods", Container: container, IfName: "eth0"}, Kind: kind}}
}

func TestOnePodOfEachENIAndFamilyIsAskedForAllWaysOfItsPackets(t *testing.T) {
	s := &ipam.State{Settings: ipam.Settings{SNAT: true, MarkMask: 0xff, VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/56")}}}
	for i := range 2 {
		s.ENIs = append(s.ENIs, eni.Interface{Index: i, Device: fmt.Sprintf("eth%d", i),
			V4: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("10.0.255.25%d/24", i+3)), Gateway: netip.MustParseAddr("10.0.255.1")},
			V6: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", i+1)), Gateway: netip.MustParseAddr("fe80::1")}})
	}
	s.Addresses = []eni.Address{heldBy("10.0.255.21", 0, "bridged", eni.Delegated), heldBy("10.0.255.22", 0, "a", eni.Veth),
		heldBy("10.0.255.31", 1, "b", eni.Veth), heldBy("10.0.255.32", 1, "c", eni.Veth), heldBy("2001:db8::32", 1, "c", eni.Veth)}
	dev := func(container string) string {
		return HostDevice(eni.Key{Network: "pods", Container: container, IfName: "eth0"})
	}
	var got []string
	for _, p := range Probes(s, []string{dev("bridged"), dev("a"), dev("c")}, nil) { // the link of b is not there yet
		way := fmt.Sprintf("by %s via %s", p.Dev, p.Gateway)
		switch {
		case p.Main:
			way = "by main"
		case p.Arrives:
			way = fmt.Sprintf("in by %s by %s", p.In, map[string]string{dev("a"): "a", dev("c"): "c"}[p.Dev])
		}
		got = append(got, fmt.Sprintf("%s to %s mark %#x %s", p.From, p.To, p.Mark, way))
	}
	want := []string{"10.0.255.22 to 198.51.100.1 mark 0x0 by main", "10.0.255.22 to 10.0.255.252 mark 0x0 by main",
		"10.0.255.32 to 198.51.100.1 mark 0x0 by main", "10.0.255.32 to 10.0.255.252 mark 0x1 by eth1 via 10.0.255.1",
		"2001:db8::32 to 3fff::1 mark 0x1 by eth1 via fe80::1", "2001:db8::32 to 2001:db8:0:ff:ffff:ffff:ffff:fffe mark 0x1 by eth1 via fe80::1",
		"198.51.100.1 to 10.0.255.22 mark 0x0 in by eth0 by a",
		"198.51.100.1 to 10.0.255.32 mark 0x0 in by eth1 by c", "198.51.100.1 to 10.0.255.32 mark 0x0 in by eth0 by c",
		"10.0.255.32 to 198.51.100.1 mark 0x1 by eth1 via 10.0.255.1",
		"3fff::1 to 2001:db8::32 mark 0x0 in by eth1 by c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhichRuleDecidesOnAPacket(t *testing.T) {
	table := func(dst, kind string, n, metric int) TableRoute {
		return TableRoute{Dst: netip.MustParsePrefix(dst), Type: kind, Table: n, Metric: metric, Dev: fmt.Sprint("eth", n)}
	}
	routes := []TableRoute{table("0.0.0.0/0", "", 1, 0), table("10.0.0.0/8", "throw", 2, 0), table("0.0.0.0/0", "", 2, 0),
		table("10.1.0.0/16", "", 3, 9), table("10.1.0.0/16", "blackhole", 3, 5), table("10.0.0.0/8", "", 3, 0)}
	to := func(priority, table int) PolicyRule {
		return PolicyRule{Priority: priority, Action: ActionTable, Table: table, Suppress: -1}
	}
	with := func(r PolicyRule, change func(*PolicyRule)) PolicyRule { change(&r); return r }
	for _, tt := range []struct {
		name  string
		rules []PolicyRule
		want  string // the priority and the route
	}{
		{"the first that has a route", []PolicyRule{to(1, 9), to(2, 1), to(3, 3)}, "2 default dev eth1"},
		{"throw goes on", []PolicyRule{to(1, 2), to(2, 1)}, "2 default dev eth1"},
		{"the most specific, then the best metric", []PolicyRule{to(1, 3)}, "1 blackhole 10.1.0.0/16 dev eth3 metric 5"},
		{"wide routes don't count", []PolicyRule{with(to(1, 3), func(r *PolicyRule) { r.Suppress = 16 }), to(2, 1)}, "2 default dev eth1"},
		{"selectors", []PolicyRule{with(to(1, 3), func(r *PolicyRule) { r.From = netip.MustParsePrefix("10.9.0.0/16") }),
			with(to(2, 3), func(r *PolicyRule) { r.Mark, r.Mask = 2, 0xff }), with(to(3, 3), func(r *PolicyRule) { r.In = "other" }),
			with(to(4, 3), func(r *PolicyRule) { r.Narrow = true }), with(to(5, 3), func(r *PolicyRule) { r.To = netip.MustParsePrefix("10.9.0.0/16") }),
			with(to(6, 1), func(r *PolicyRule) { r.From = netip.MustParsePrefix("10.2.0.0/16") })}, "6 default dev eth1"},
		{"not", []PolicyRule{with(to(1, 1), func(r *PolicyRule) { r.Not, r.Mark, r.Mask = true, 2, 0xff })}, "1 default dev eth1"},
		{"goto", []PolicyRule{{Priority: 1, Action: ActionGoto, Goto: 5}, to(2, 3), to(5, 1)}, "5 default dev eth1 passed by 1"},
		{"goto of enipool's", []PolicyRule{{Priority: 1, Action: ActionGoto, Goto: 5, Protocol: Protocol}, to(2, 3), to(5, 1)}, "5 default dev eth1"},
		{"goto a rule that is not there", []PolicyRule{{Priority: 1, Action: ActionGoto, Goto: 9}, to(2, 1)}, "2 default dev eth1"},
		{"transports and ports", []PolicyRule{with(to(1, 3), func(r *PolicyRule) { r.Transport = UDP }), with(to(2, 3), func(r *PolicyRule) { r.ToPorts = PortRange{81, 90} }),
			with(to(3, 3), func(r *PolicyRule) { r.FromPorts = PortRange{80, 80} }), with(to(4, 1), func(r *PolicyRule) { r.Transport, r.ToPorts = TCP, PortRange{79, 80} })}, "4 default dev eth1"},
		{"a rule that ends it", []PolicyRule{{Priority: 1, Action: ActionNothing}, {Priority: 2, Action: ActionProhibit}, to(3, 1)}, "2"},
		{"none", []PolicyRule{to(1, 9)}, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Policy{Rules: tt.rules, Routes: routes}.Decide(Packet{From: netip.MustParseAddr("10.2.0.1"), To: netip.MustParseAddr("10.1.0.1"), In: "pod", Mark: 1, Transport: TCP, ToPort: 80})
			got := fmt.Sprint(d.Rule.Priority)
			if d.Route != nil {
				got += " " + d.Route.String()
			}
			if d.Passed != nil {
				got += fmt.Sprintf(" passed by %d", d.Passed.Priority)
			}
			if !d.Found {
				got = "none"
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	sorted := []PolicyRule{to(3, 1), to(1, 2), to(3, 2)}
	SortRules(sorted)
	if text := fmt.Sprint(sorted); !strings.HasPrefix(text, "[priority 1 from all lookup 2 priority 3 from all lookup 1 ") {
		t.Error(text)
	}
}
