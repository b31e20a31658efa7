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
