package engine_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A range for pods that somebody has typed with host bits is taken for the one around it, what is
// none is left out alone, and both are said.
func TestARangeForPodsThatIsToldWrongIsSaid(t *testing.T) {
	for told, want := range map[netip.Prefix]struct{ taken, why string }{
		netip.MustParsePrefix("10.65.1.0/24"):                        {"10.65.1.0/24", ""},
		netip.MustParsePrefix("10.65.1.7/24"):                        {"10.65.1.0/24", "has host bits: it is taken for 10.65.1.0/24"},
		netip.PrefixFrom(netip.MustParseAddr("10.65.1.0"), 33):       {"", "can't be one, and is left out alone"},
		netip.MustParsePrefix("2001:db8:0:9::/64"):                   {"", ""}, // the ENI has no IPv6
		netip.PrefixFrom(netip.MustParseAddr("::ffff:1.2.3.0"), 120): {"", "can't be one"},
	} {
		t.Run(told.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				n := engine.New(&edited{Driver: w.Driver("i-1", w.traits), subnets: func(all []driver.Subnet) []driver.Subnet {
					for k := range all {
						all[k].Pods = []netip.Prefix{told}
					}
					return all
				}}, engine.Options{Subnets: []string{"a", "b"}})
				list, err := n.Interfaces(t.Context())
				must(t, err)
				var taken []netip.Prefix
				if want.taken != "" {
					taken = append(taken, netip.MustParsePrefix(want.taken))
				}
				if len(list) != 1 || !slices.Equal(list[0].Pods, taken) {
					t.Errorf("the node has %+v, want range %q", list, want.taken)
				}
				q := n.Quarantined()
				if len(q) != min(len(want.why), 1) || len(q) > 0 && (!strings.Contains(q[0].Why, want.why) || q[0].Subnet == "") {
					t.Errorf("it says %+v, want %q", q, want.why)
				}
			})
		})
	}
}
