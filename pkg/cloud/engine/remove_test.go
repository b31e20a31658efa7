package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// bothKinds are the two kinds of clouds.
func bothKinds() map[string]driver.Traits {
	return map[string]driver.Traits{"like EC2": sim.LikeEC2(), "like BCE": sim.LikeBCE()}
}

// moves attaches an ENI to another instance, as a person does.
func (w *world) moves(t *testing.T, id, to string) {
	t.Helper()
	must(t, w.Update(func(tx *sim.Tx) error {
		_, err := tx.Attach(sim.Attach{Interface: id, Instance: to, Index: -1})
		return err
	}))
}

// at returns the instance that an ENI is attached to, "" for none, and whether there is
// such an ENI.
func (w *world) at(id string) (at string, there bool) {
	w.View(0, func(tx *sim.Tx) {
		i, err := tx.Interface(id)
		if there = err == nil; there && i.Attachment != nil {
			at = i.Attachment.Instance
		}
	})
	return at, there
}

// hooked is a driver before whose requests something happens in the account.
type hooked struct {
	driver.Driver
	before func(method, id string)
}

func (d *hooked) Delete(ctx context.Context, id, token string) error {
	d.before("Delete", id)
	return d.Driver.Delete(ctx, id, token)
}

func (d *hooked) Attach(ctx context.Context, a driver.Attach) (string, error) {
	d.before("Attach", a.ID)
	return d.Driver.Attach(ctx, a)
}

func TestAnENIThatAnotherInstanceGetsWhileItIsDeletedStaysThere(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{DetachTime: time.Second}, engine.Options{})
				d := &hooked{Driver: w.Driver("i-1", w.traits), before: func(string, string) {}}
				n := engine.New(d, engine.Options{Subnets: []string{"a"}})
				i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				must(t, err)
				once := false
				d.before = func(method, id string) {
					if method == "Delete" && !once { // it is detached: somebody else attaches it
						once = true
						w.moves(t, id, "i-2")
					}
				}
				err = n.DeleteInterface(t.Context(), i.ID)
				if at, there := w.at(i.ID); !once || !there || at != "i-2" {
					t.Errorf("ENI %s, which i-2 had, is there %t, attached to %q after %v", i.ID, there, at, err)
				}
			})
		})
	}
}

// Of an ENI that is another instance's by now nothing is left to this node: the call says so
// for good, and the agent begins with a token anew.
func TestATokenWhoseENIAnotherInstanceHasIsGivenUp(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				d := &hooked{Driver: w.Driver("i-1", w.traits), before: func(string, string) {}}
				n := engine.New(d, engine.Options{Subnets: []string{"a"}})
				once := false
				d.before = func(method, id string) {
					if method == "Attach" && !once {
						once = true
						w.moves(t, id, "i-2")
					}
				}
				var err error
				for range 3 {
					if _, err = n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3}); err == nil {
						return
					}
					time.Sleep(5 * time.Minute)
				}
				if kind := cloud.Kind(err); kind != cloud.ErrForbidden || len(w.truth()) != 1 {
					t.Errorf("after three calls there is %+v: %v", w.truth(), err)
				}
			})
		})
	}
}

// Between a look and the deletion somebody puts an address on the ENI, for something on the node. Nobody
// who asks for the deletion can know: a look has to show it first.
func TestAnENIIsNotDeletedWithWhatNobodyHasSeenOnIt(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{})
				n := w.node("i-1")
				made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 2})
				must(t, err)
				shows(t, n, 2)
				must(t, n.UnassignAddresses(t.Context(), made.ID, made.Addresses[:1]))
				_, err = n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 1)
				must(t, err)
				var theirs sim.Got
				must(t, w.Update(func(tx *sim.Tx) error {
					theirs, err = tx.Assign(made.ID, sim.AddressRequest{CountV4: 1})
					return err
				}))
				if err := n.DeleteInterface(t.Context(), made.ID); cloud.Kind(err) != cloud.ErrNotFound {
					t.Errorf("to delete it with %v, which nobody has seen, says %v", theirs.V4, err)
				}
				shows(t, n, 2)
				has(t, n, made.ID, theirs.V4, nil)
				must(t, n.DeleteInterface(t.Context(), made.ID))
			})
		})
	}
}
