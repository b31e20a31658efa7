package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// groupsOf returns the security groups of an ENI.
func (w *world) groupsOf(t *testing.T, id string) (groups []string) {
	t.Helper()
	w.View(0, func(tx *sim.Tx) {
		i, err := tx.Interface(id)
		must(t, err)
		groups = i.Groups
	})
	return groups
}

func TestSecurityGroupsOfENIsFollowTheConfiguration(t *testing.T) {
	for name, traits := range map[string]func() *world{
		"like EC2": func() *world { return newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{}) },
		"like BCE": func() *world { return newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := traits()
			for _, id := range []string{"sg-1", "sg-2", "sg-3"} {
				w.AddGroup(sim.Group{ID: id, Name: id})
			}
			w.o.SecurityGroups = []string{"sg-1"}
			made, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
			must(t, err)
			other, err := w.node("i-2").CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
			must(t, err)

			w.o.SecurityGroups = []string{"sg-3", "sg-2"}
			n := w.node("i-1")
			keep := func(want ...string) {
				t.Helper()
				_, err := n.Interfaces(t.Context())
				must(t, err)
				if changed, err := n.Upkeep(t.Context()); err != nil || !slices.Equal(changed, want) {
					t.Errorf("Upkeep changed %v, %v; want %v", changed, err, want)
				}
			}
			keep(made.ID)
			if got := w.groupsOf(t, made.ID); !slices.Equal(got, []string{"sg-2", "sg-3"}) {
				t.Errorf("the ENI has groups %v", got)
			}
			if got := w.groupsOf(t, other.ID); !slices.Equal(got, []string{"sg-1"}) {
				t.Errorf("another node's ENI has groups %v", got)
			}
			calls := w.Calls()[sim.ActModify]
			keep()
			if got := w.Calls()[sim.ActModify]; got != calls {
				t.Errorf("groups that are right take %d calls", got-calls)
			}
			must(t, w.Update(func(tx *sim.Tx) error { return tx.Modify(made.ID, sim.Edit{Groups: []string{"sg-1"}}) }))
			keep(made.ID)

			w.o.SecurityGroups = []string{"sg-9"} // there is none
			n = w.node("i-1")
			_, err = n.Interfaces(t.Context())
			must(t, err)
			if changed, err := n.Upkeep(t.Context()); err == nil || len(changed) > 0 {
				t.Errorf("groups that don't exist: changed %v, %v", changed, err)
			}
			if got := w.groupsOf(t, made.ID); !slices.Equal(got, []string{"sg-2", "sg-3"}) {
				t.Errorf("after a refusal the ENI has groups %v", got)
			}
		})
	}
}

// Upkeep changes no ENI that is another's, or nobody's to touch, by now.
func TestUpkeepLeavesAloneWhatIsNoLongerTheNodes(t *testing.T) {
	for name, what := range map[string]string{"moved to another instance": "moved", "tagged as not for pods": "tagged"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
				for _, id := range []string{"sg-1", "sg-quarantine"} {
					w.AddGroup(sim.Group{ID: id, Name: id})
				}
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				n := engine.New(d, engine.Options{Subnets: []string{"a"}, SecurityGroups: []string{"sg-1"}})
				i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				must(t, err)
				// A person isolates it, then takes it out of enipool's hands.
				must(t, w.Update(func(tx *sim.Tx) error { return tx.Modify(i.ID, sim.Edit{Groups: []string{"sg-quarantine"}}) }))
				shows(t, n, 2)
				if what == "moved" {
					must(t, w.Detach(i.ID))
					w.moves(t, i.ID, "i-2")
				} else {
					tagging(d, func(k driver.Interface) bool { return k.ID == i.ID })
				}
				time.Sleep(time.Minute)
				shows(t, n, 1)
				changed, err := n.Upkeep(t.Context())
				if got := w.groupsOf(t, i.ID); !slices.Equal(got, []string{"sg-quarantine"}) {
					t.Errorf("Upkeep changed %v (%v): the groups of an ENI that is not the node's are %v", changed, err, got)
				}
			})
		})
	}
}
