package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A Node goes while its instance still runs, as where somebody deletes it before the instance, or comes back with another one. On a cloud whose ENIs outlive
// their instances what the first instance has left is deleted soon after it is gone, not a day later.
func TestWhatAnInstanceLeavesIsDeletedHoweverItsNodeGoes(t *testing.T) {
	cases := sampled(2, 1)
	for name, goes := range map[string]func(w *world, node string){
		"the Node before the instance": func(w *world, node string) {
			w.store.forgetNode(node)
			w.store.remove(node)
			w.until(5*time.Minute, func() bool { return w.store.node(node) == nil })
			time.Sleep(30 * time.Second)
			w.must(w.Terminate("i-" + node))
		},
		"another instance": func(w *world, node string) {
			_, err := w.AddInstance(sim.Instance{ID: "i-other", Type: "small", Subnet: "a"})
			w.must(err)
			w.must(w.Terminate("i-" + node))
			w.store.replaceInstance(node, "i-other")
		},
	} {
		if cases--; cases < 0 {
			break
		}
		t.Run(name, func(t *testing.T) {
			play(t, setup{nodes: 2, likeBCE: true}, func(ctx context.Context, w *world) {
				w.T = t
				w.leadWith(ctx, nil)
				w.begin(ctx)
				for _, a := range w.agents {
					a.set(14)
				}
				w.until(10*time.Minute, w.isQuiet)
				time.Sleep(10 * time.Minute) // the sweep of the term is over
				a := w.agents[0]
				a.end()
				time.Sleep(time.Second)
				goes(w, a.name)
				left := func() (n int) {
					w.View(0, func(tx *sim.Tx) {
						for _, nic := range tx.Interfaces() {
							if nic.Attachment == nil {
								n += len(nic.V4)
							}
						}
					})
					return n
				}
				if left() == 0 {
					t.Fatal("the instance has left no ENI: the test shows nothing")
				}
				time.Sleep(3 * time.Hour)
				if n := left(); n > 0 {
					t.Errorf("three hours later %d addresses are on ENIs of an instance that is gone", n)
				}
			})
		})
	}
}
