package agent

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A cloud may give an address that it has just taken from one ENI to another one of the
// node, and the answer of the release come last.
func TestAnAddressThatMovesToAnotherENIIsWhereItCame(t *testing.T) {
	moved := netip.MustParseAddr("10.0.1.20")
	for name, r := range map[string]result{
		"assigned": {call: &call{op: "AssignAddresses", id: "eni-2"}, addrs: []netip.Addr{moved}},
		"made":     {call: &call{op: "CreateInterface"}, nic: cloud.Interface{ID: "eni-2", Index: 2, Addresses: []netip.Addr{moved}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
			a := w.addNode(testConfig("n1"), sim.Machine{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
			a.view = view{known: true, enis: []cloud.Interface{{ID: "eni-1", Index: 1, Addresses: []netip.Addr{moved}}, {ID: "eni-2", Index: 2}}}
			a.mem.Begun[moved] = true
			a.take(r, 1)
			a.take(result{call: &call{op: "UnassignAddresses", id: "eni-1", addrs: []netip.Addr{moved}}}, 2)
			one, _ := a.view.eni("eni-1")
			two, _ := a.view.eni("eni-2")
			if len(one.Addresses) > 0 || !slices.Equal(two.Addresses, []netip.Addr{moved}) {
				t.Errorf("eni-1 has %v, eni-2 %v", one.Addresses, two.Addresses)
			}
			if _, gone := a.mem.Gone[moved]; gone || !a.mem.Begun[moved] {
				t.Errorf("gone %v, begun %v", a.mem.Gone, a.mem.Begun)
			}
		})
	}
}
