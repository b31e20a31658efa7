package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// unmarking takes the tags of each ENI before it is described.
func (w *world) unmarking(t *testing.T, d *edited, in func(driver.Mark) driver.Mark) {
	d.interfaces = func(all []driver.Interface) []driver.Interface {
		must(t, w.Update(func(tx *sim.Tx) error {
			for _, i := range tx.Interfaces() {
				if len(i.Tags) > 0 {
					if err := tx.Untag([]string{i.ID}, nil); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		for i := range all {
			all[i].Mark = in(all[i].Mark)
		}
		return all
	}
}

// enis counts the account's ENIs.
func (w *world) enis() (n int) {
	w.View(0, func(tx *sim.Tx) { n = len(tx.Interfaces()) })
	return n
}

func TestAnENIWhoseMarkIsTakenAtOnceIsTheNodesAllTheSame(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{AttachTime: time.Second}, engine.Options{})
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				w.unmarking(t, d, func(driver.Mark) driver.Mark { return driver.Mark{} })
				n := engine.New(d, engine.Options{Subnets: []string{"a"}})
				made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				must(t, err)
				if !made.Ours || made.Token != "a" || made.Index != 1 {
					t.Errorf("it is made as %+v", made)
				}
				for range 3 {
					time.Sleep(time.Hour)
					list, err := n.Interfaces(t.Context())
					must(t, err)
					if len(list) != 2 || !list[1].Ours || list[1].Token != "a" || list[1].Index != 1 {
						t.Errorf("it is shown as %+v", list)
					}
				}
				must(t, n.DeleteInterface(t.Context(), made.ID))
				if _, there := w.at(made.ID); there {
					t.Errorf("ENI %s is not deleted", made.ID)
				}
			})
		})
	}
}

// A person detaches an ENI and takes its mark, to keep it: it is not a leaked one.
func TestAnENIThatSomebodyTookOffTheNodeWithItsMarkIsTheirs(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				n := w.node("i-1")
				made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				must(t, err)
				shows(t, n, 2)
				must(t, w.Detach(made.ID))
				must(t, w.Update(func(tx *sim.Tx) error { return tx.Untag([]string{made.ID}, nil) }))
				time.Sleep(time.Hour)
				shows(t, n, 1)
				if err := n.DeleteInterface(t.Context(), made.ID); cloud.Kind(err) != cloud.ErrForbidden {
					t.Errorf("to delete it says %v", err)
				}
				if _, there := w.at(made.ID); !there {
					t.Errorf("ENI %s is deleted", made.ID)
				}
			})
		})
	}
}

func TestAnENIThatIsMarkedForSomebodyElseAtOnceIsNotMadeAgainAndAgain(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				w.unmarking(t, d, func(m driver.Mark) driver.Mark { return driver.Mark{Instance: "i-9", Token: "x"} })
				n := engine.New(d, engine.Options{Subnets: []string{"a"}})
				before := w.enis()
				for range 5 {
					_, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
					if err == nil {
						break
					}
					time.Sleep(5 * time.Minute)
				}
				if made := w.enis() - before; made != 1 {
					t.Errorf("%d ENIs are made", made)
				}
			})
		})
	}
}

const tagged = "it has the tag node.k8s.amazonaws.com/no_manage"

// tagging shows ENIs as not for pods.
func tagging(d *edited, which func(driver.Interface) bool) {
	d.interfaces = func(all []driver.Interface) []driver.Interface {
		for k := range all {
			if !all[k].Primary && which(all[k]) {
				all[k].Unmanaged = tagged
			}
		}
		return all
	}
}

// A tool of the account tags each new ENI as not for pods, before it is attached or after.
func TestAnENIThatIsTaggedAsNotForPodsWhileItIsMadeIsUndone(t *testing.T) {
	for name, when := range map[string]func(driver.Interface) bool{
		"at once":          func(driver.Interface) bool { return true },
		"once it is there": func(i driver.Interface) bool { return i.State == driver.Attached },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeEC2(), sim.Options{AttachTime: time.Second}, engine.Options{})
				d := &edited{Driver: w.Driver("i-1", w.traits)}
				tagging(d, when)
				n := engine.New(d, engine.Options{Subnets: []string{"a"}})
				_, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				if cloud.Kind(err) != cloud.ErrForbidden || len(w.truth()) > 0 {
					t.Errorf("after %v there is left %+v", err, w.truth())
				}
			})
		})
	}
}

func TestATokenWhoseENIIsTaggedAsNotForPodsIsGivenUpByALaterProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		_, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
		must(t, err)
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		tagging(d, func(driver.Interface) bool { return true })
		n := engine.New(d, engine.Options{Subnets: []string{"a"}})
		n.Recall(cloud.Notes{Begun: []string{"a"}})
		_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
		if cloud.Kind(err) != cloud.ErrForbidden || len(w.truth()) != 1 {
			t.Errorf("after %v there is left %+v", err, w.truth())
		}
		shows(t, n, 1)
		if l := n.LimitsNow(); l.ENIs != 3 {
			t.Errorf("beside it there is room for %d ENIs, want 3", l.ENIs)
		}
	})
}
