package netconf

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// tableRoute is a route of others; where is a gateway, a link, or both.
func tableRoute(dst, via, dev string, table, metric int) TableRoute {
	r := TableRoute{Dst: netip.MustParsePrefix(dst), Dev: dev, Table: table, Protocol: 4, Metric: metric}
	if via != "" {
		r.Gateway = netip.MustParseAddr(via)
	}
	return r
}

func TestARouteOfOthersStaysAndIsTold(t *testing.T) {
	want := threeENIs(func(s *ipam.State) { s.Settings.Routing = ipam.Map })
	const ours = "+ route default via 10.0.1.1 dev eth1 table 101 proto 69\n"
	for _, tt := range []struct {
		name   string
		other  TableRoute
		lacks  bool   // the kernel lacks our default route
		diff   string // what is done then
		effect string
	}{
		{"another default route", tableRoute("0.0.0.0/0", "", "eth0", 101, 0), true, "",
			"default dev eth0: what pods of the ENI eth1 send out of the node leaves by it, and enipool's own (via 10.0.1.1) is not there; remove it (ip route del default dev eth0 table 101)"},
		{"the same route as ours", tableRoute("0.0.0.0/0", "10.0.1.1", "eth1", 101, 0), true, "", ""},
		{"one that comes after ours", tableRoute("0.0.0.0/0", "10.0.1.9", "eth1", 101, 100), true, ours, ""},
		{"one to a network", tableRoute("10.9.0.0/16", "10.0.1.9", "eth1", 101, 0), true, ours,
			"10.9.0.0/16 via 10.0.1.9 dev eth1: what pods of the ENI eth1 send to 10.9.0.0/16 leaves by it; remove it (ip route del 10.9.0.0/16 via 10.0.1.9 dev eth1 table 101)"},
		{"one that leads nowhere", TableRoute{Dst: Anywhere(false), Type: "blackhole", Table: 101}, true, "",
			"blackhole default: what pods of the ENI eth1 send out of the node ends there, and enipool's own (via 10.0.1.1) is not there; remove it (ip route del blackhole default table 101)"},
		{"a host route in the pods' table", tableRoute("10.0.0.2/32", "10.0.0.1", "eth0", 100, 0), false, "",
			"10.0.0.2 via 10.0.0.1 dev eth0: what the node and its pods send to 10.0.0.2 leaves by it; remove it (ip route del 10.0.0.2 via 10.0.0.1 dev eth0 table 100)"},
		{"a default route in the pods' table, which nothing finds", tableRoute("0.0.0.0/0", "10.0.0.1", "eth0", 100, 0), false, "", ""},
		{"one in the table of an ENI that the node has not", tableRoute("0.0.0.0/0", "10.0.0.1", "eth0", 105, 0), false, "", ""},
		{"one of the other family", tableRoute("::/0", "fe80::1", "eth0", 101, 1024), true, ours, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			have := threeENIs(func(s *ipam.State) { s.Settings.Routing = ipam.Map })
			have.Others = []TableRoute{tt.other}
			if tt.lacks {
				have.Routes = subtract(have.Routes, []Route{{Dst: Anywhere(false), Gateway: netip.MustParseAddr("10.0.1.1"), Dev: "eth1", Table: 101}})
			}
			if diff := cmp.Diff(tt.diff, strings.TrimPrefix(difference(have, want, Node{}), "\n")); diff != "" {
				t.Error(diff)
			}
			got := strings.Join(Misrouted(have.Others, want), "\n")
			if !strings.Contains(got, "that is not enipool's, "+tt.effect) && tt.effect != "" || (got == "") != (tt.effect == "") {
				t.Errorf("it says %q", got)
			}
		})
	}
}
