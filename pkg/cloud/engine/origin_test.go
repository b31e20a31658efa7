package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// An ENI that others made and attached to an instance of the Region is theirs.
func TestAMoveTakesNothingOffOthersENIsOfOurInstances(t *testing.T) {
	for whose, tags := range map[string]map[string]string{
		"nobody's": nil, "another cluster's": {"enipool/token": "v", "enipool/node": "i-7", "enipool/cluster": "green"},
	} {
		t.Run(whose, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				r := w.region(engine.Options{Cluster: "blue"})
				n := r.Node(cloud.Instance{ID: "i-1"})
				_ = r.Node(cloud.Instance{ID: "i-2"})
				made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 1})
				must(t, err)
				var theirs sim.Interface
				must(t, w.Update(func(tx *sim.Tx) error {
					if theirs, err = tx.Create(sim.Create{Subnet: "a", Tags: tags, AddressRequest: sim.AddressRequest{CountV4: 1}}); err != nil {
						return err
					}
					_, err = tx.Attach(sim.Attach{Interface: theirs.ID, Instance: "i-2", Index: -1})
					return err
				}))
				got, err := r.AssignExactly(t.Context(), "i-1", made.ID, theirs.V4, cloud.Origin{ENI: theirs.ID})
				if !errors.Is(err, cloud.ErrForbidden) || len(got) > 0 {
					t.Errorf("of an ENI that others have made %v are taken, %v", got, err)
				}
			})
		})
	}
}

// A primary ENI has no mark: pods' addresses are on that of an instance that there is a Node of.
func TestAMoveTakesFromPrimaryENIsOfOurInstancesAlone(t *testing.T) {
	for from, want := range map[string]error{"i-2": nil, "i-9": cloud.ErrForbidden} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				_, err := w.AddInstance(sim.Instance{ID: "i-9", Type: "small", Subnet: "a"})
				must(t, err)
				r := w.region(engine.Options{Cluster: "blue"})
				made, err := r.Node(cloud.Instance{ID: "i-1"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 1})
				must(t, err)
				_ = r.Node(cloud.Instance{ID: "i-2"})
				theirs := w.node(from)
				list, err := theirs.Interfaces(t.Context())
				must(t, err)
				addrs, err := theirs.AssignAddresses(t.Context(), list[0].ID, eni.IPv4, 1)
				must(t, err)
				got, err := r.AssignExactly(t.Context(), "i-1", made.ID, addrs, cloud.Origin{ENI: list[0].ID})
				if !errors.Is(err, want) || (len(got) == 1) != (want == nil) {
					t.Errorf("of the primary ENI of %s %v are taken, %v", from, got, err)
				}
			})
		})
	}
}

// Somebody has taken the mark of an ENI that this process made: it is the node's all the same.
func TestAMoveKnowsOurENIWithoutItsMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		r := engine.NewRegion(d, engine.Options{Subnets: []string{"a"}, Cluster: "blue"})
		var made []cloud.Interface
		for _, id := range []string{"i-1", "i-2"} {
			i, err := r.Node(cloud.Instance{ID: id}).CreateInterface(t.Context(), cloud.Create{Token: id, Subnet: "a", V4: 1})
			must(t, err)
			made = append(made, i)
		}
		d.interfaces = func(all []driver.Interface) []driver.Interface {
			for k := range all {
				all[k].Mark = driver.Mark{}
			}
			return all
		}
		if got, err := r.AssignExactly(t.Context(), "i-1", made[0].ID, made[1].Addresses, cloud.Origin{ENI: made[1].ID}); err != nil || len(got) != 1 {
			t.Errorf("of an ENI of ours %v are taken, %v", got, err)
		}
	})
}

// Two clusters of an account have no name. That both have none does not make one's ENIs the other's.
func TestAMoveOfAClusterWithoutANameTakesNothingFromAnothersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		theirs, err := w.region(engine.Options{}).Node(cloud.Instance{ID: "i-2"}).CreateInterface(t.Context(), cloud.Create{Token: "theirs", Subnet: "a", V4: 1})
		must(t, err)
		r := w.region(engine.Options{})
		made, err := r.Node(cloud.Instance{ID: "i-1"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a", V4: 1})
		must(t, err)
		got, err := r.AssignExactly(t.Context(), "i-1", made.ID, theirs.Addresses, cloud.Origin{ENI: theirs.ID})
		if !errors.Is(err, cloud.ErrForbidden) || len(got) > 0 {
			t.Errorf("of an ENI of an instance that this Region has no Node of %v are taken, %v", got, err)
		}
	})
}
