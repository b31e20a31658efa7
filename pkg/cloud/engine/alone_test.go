package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// Pods can use the primary ENI only where it is the one that the instance may have. One look tells
// wrong of the other one, which is attached all the same.
func TestAnENIThatIsLeftOutMakesThePrimaryOneNotAlone(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				w.third(t, sim.Type{Name: "two", ENIs: 2, V4: 8})
				d := &edited{Driver: w.Driver("i-3", w.traits), shape: func(s driver.Shape) driver.Shape {
					s.PrimaryAlone = true
					return s
				}}
				n := engine.New(d, engine.Options{Subnets: []string{"a", "b"}})
				if l, err := n.Limits(t.Context()); err != nil || !l.NoPrimary {
					t.Fatalf("limits are %+v, %v", l, err)
				}
				_, err := n.CreateInterface(t.Context(), cloud.Create{Token: "intent", Subnet: "b", V4: 5})
				must(t, err)
				d.interfaces = withoutMACs
				list, err := n.Interfaces(t.Context())
				must(t, err)
				if l := n.LimitsNow(); !l.NoPrimary {
					got, err := n.AssignAddresses(t.Context(), list[0].ID, eni.IPv4, 3)
					t.Errorf("limits are %+v: an ENI is attached beside the primary one, and that gets %v for pods, %v", l, got, err)
				}
			})
		})
	}
}

// One look tells wrong of the node's other ENI. That is no reason for ENIs to have no IPv6.
func TestAnENIThatIsLeftOutTakesNoIPv6FromTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{IPv6: true})
		w.third(t, sim.Type{Name: "two", ENIs: 2, V4: 8, V6: 8})
		d := &edited{Driver: w.Driver("i-3", w.traits)}
		n := engine.New(d, engine.Options{Subnets: []string{"a", "b"}, IPv6: true})
		before, err := n.Limits(t.Context())
		must(t, err)
		_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "intent", Subnet: "b", V4: 2, V6: 2})
		must(t, err)
		d.interfaces = withoutMACs
		_, err = n.Interfaces(t.Context())
		must(t, err)
		if l := n.LimitsNow(); l.V6 != before.V6 || before.V6 == 0 {
			t.Errorf("ENIs may have %d IPv6 addresses after one wrong answer, and %d before", l.V6, before.V6)
		}
	})
}
