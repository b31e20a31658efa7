package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// byHand makes an ENI in the subnet and attaches it to the instance, as a person may.
func (w *world) byHand(t *testing.T, instance, subnet string) (id string) {
	t.Helper()
	must(t, w.Update(func(tx *sim.Tx) error {
		made, err := tx.Create(sim.Create{Subnet: subnet})
		if err != nil {
			return err
		}
		id = made.ID
		_, err = tx.Attach(sim.Attach{Interface: id, Instance: instance, Index: -1})
		return err
	}))
	return id
}

// refusing answers no request about the subnet.
func refusing(subnet string, kind error, asked *int) func(driver.SubnetFilter) error {
	return func(f driver.SubnetFilter) error {
		if !slices.Contains(f.IDs, subnet) {
			return nil
		}
		*asked++
		return &driver.Error{Kind: kind, Why: cloud.Unauthorized, Detail: "AccessDenied: not that one"}
	}
}

// The role of a node may be about its own subnets alone.
func TestAForeignSubnetThatMayNotBeDescribedDoesNotBlindTheNode(t *testing.T) {
	for name, traits := range bothKinds() {
		for _, kind := range []error{cloud.ErrForbidden, cloud.ErrNotFound} {
			t.Run(name+"/"+kind.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, traits, sim.Options{}, engine.Options{})
					_, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
					must(t, err)
					foreign, asked := w.byHand(t, "i-1", "b"), 0
					d := &edited{Driver: w.Driver("i-1", w.traits), noSubnets: refusing("b", kind, &asked)}
					n := engine.New(d, engine.Options{Subnets: []string{"a"}})
					for range 5 {
						shows(t, n, 2)
						if q := n.Quarantined(); len(q) != 1 || q[0].ID != foreign || !strings.Contains(q[0].Why, "not that one") {
							t.Fatalf("left out are %+v", q)
						}
						time.Sleep(time.Minute)
					}
					if list, err := n.Subnets(t.Context()); err != nil || len(list) != 1 {
						t.Errorf("subnets are %+v, %v", list, err)
					}
					if asked > 2 {
						t.Errorf("in five minutes %d requests were for what is refused", asked)
					}
					d.noSubnets = nil // somebody has allowed it
					time.Sleep(15 * time.Minute)
					shows(t, n, 3)
					d.noSubnets = refusing("b", kind, &asked) // and no longer does
					time.Sleep(15 * time.Minute)
					shows(t, n, 3)
					if list, err := n.Subnets(t.Context()); err != nil || len(list) != 1 {
						t.Errorf("subnets are %+v, %v", list, err)
					}
				})
			})
		}
	}
}

// Without its own subnets there is nothing to go by: pods' addresses would count as lost.
func TestAnOwnSubnetThatMayNotBeDescribedFailsTheLook(t *testing.T) {
	for _, subnet := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
			_, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "b", V4: 3})
			must(t, err)
			asked := 0
			d := &edited{Driver: w.Driver("i-1", w.traits), noSubnets: refusing(subnet, cloud.ErrForbidden, &asked)}
			n := engine.New(d, engine.Options{})
			for range 2 {
				if list, err := n.Interfaces(t.Context()); !errors.Is(err, cloud.ErrForbidden) {
					t.Errorf("without subnet %s there are %+v, %v", subnet, list, err)
				}
			}
			d.noSubnets = nil
			shows(t, n, 2)
		})
	}
}

func TestANodeWhoseSubnetMayNotBeDescribedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		_, err := w.AddInstance(sim.Instance{ID: "i-3", Type: "small", Subnet: "b"})
		must(t, err)
		asked := 0
		r := engine.NewRegion(&edited{Driver: w.Driver("i-1", w.traits), noSubnets: refusing("b", cloud.ErrForbidden, &asked)}, engine.Options{Subnets: []string{"a"}})
		for _, id := range []string{"i-1", "i-3"} {
			r.Node(cloud.Instance{ID: id, Type: "small"})
		}
		views, err := r.Look(t.Context(), nil)
		must(t, err)
		if v := views["i-1"]; v.Err != nil || len(v.Interfaces) != 1 {
			t.Errorf("i-1 is shown as %+v", v)
		}
		if v := views["i-3"]; !errors.Is(v.Err, cloud.ErrForbidden) {
			t.Errorf("i-3 is shown as %+v", v)
		}
	})
}
