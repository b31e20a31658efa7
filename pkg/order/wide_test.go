package order

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// What an agent lists costs an operator no more than what the node has, however wide a prefix in it is: the object's schema lets any prefix
// pass, and one node must not end the operator of all.
func TestAWidePrefixOfOneNodeCostsNothing(t *testing.T) {
	p := netip.MustParsePrefix(x)
	status := Status{Mode: Operator, Epoch: 7, Revision: 3, Limits: eni.Limits{ENIs: 4, V4: 10},
		ENIs: []ENI{{ID: "eni-a", State: Attached, Addresses: []netip.Prefix{p}}}}
	wide := []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}
	for name, spec := range map[string]Spec{
		"release": {Mode: Operator, Families: []eni.Family{eni.IPv4}, Slots: 1, Release: wide},
		"held":    {Mode: Operator, Families: []eni.Family{eni.IPv4}, Slots: 1, Held: wide},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		have := Have(spec, status)
		Plan(spec, status, Facts{})
		runtime.ReadMemStats(&after)
		if have != 1 {
			t.Errorf("%s: has %d slots", name, have)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%s: %s costs %d MiB for a node with one address", name, wide[0], took>>20)
		}
	}
}
