package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// The subnet has nothing but what a call has just given back, and the next ENI gets that. Answers
// still show it where it was: that is no reason to leave out the ENI, or an address of it.
func TestWhatCallsGaveBackIsTheNextENIs(t *testing.T) {
	for what, giveBack := range map[string]func(*testing.T, *world, *engine.Node, cloud.Interface){
		"addresses": func(t *testing.T, _ *world, n *engine.Node, i cloud.Interface) {
			must(t, n.UnassignAddresses(t.Context(), i.ID, i.Addresses))
		},
		"an ENI": func(t *testing.T, _ *world, n *engine.Node, i cloud.Interface) {
			must(t, n.DeleteInterface(t.Context(), i.ID))
		},
		"an ENI that has just got addresses, by a lost answer": func(t *testing.T, w *world, n *engine.Node, i cloud.Interface) {
			must(t, n.UnassignAddresses(t.Context(), i.ID, i.Addresses))
			_, err := n.AssignAddresses(t.Context(), i.ID, eni.IPv4, 3)
			must(t, err)
			w.FailNext(sim.ActDelete, sim.Fault{Answer: sim.Lost})
			if err := n.DeleteInterface(t.Context(), i.ID); !errors.Is(err, cloud.ErrUnknown) {
				t.Fatalf("DeleteInterface: %v", err)
			}
			time.Sleep(3 * time.Second) // describes show that it is gone
		},
	} {
		for name, traits := range bothKinds() {
			for _, who := range []string{"the same process", "a later process"} {
				t.Run(what+"/"+name+"/"+who, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := lagging(t, traits)
						n := w.node("i-1")
						before, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
						must(t, err)
						time.Sleep(time.Minute) // describes show it
						must(t, w.LeaveFree("a", 0))
						giveBack(t, w, n, before)
						if who == "a later process" {
							notes := n.Notes()
							n = w.node("i-1")
							n.Recall(notes)
						}
						made, err := n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 2})
						must(t, err)
						has(t, n, made.ID, made.Addresses, nil)
						for _, i := range n.Known() {
							if i.ID == made.ID && i.Index != made.Index {
								t.Errorf("it was made with index %d, and is shown with %d", made.Index, i.Index)
							}
						}
					})
				})
			}
		}
	}
}
