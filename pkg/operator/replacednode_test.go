package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// A node is replaced under its name, as where names follow from addresses, while calls of which nobody knows the outcome were about the
// instance before: the new instance does not wait for them.
func TestANodeThatIsReplacedDoesNotWaitForTheInstanceBefore(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(9)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Answer: sim.Lost}})
		a.set(2)
		w.until(10*time.Minute, func() bool { return len(w.store.node(a.name).Status.Quarantined) > 0 })
		w.SetFaults()
		a.end()
		_, err := w.AddInstance(sim.Instance{ID: "i-other", Type: "small", Subnet: "a"})
		w.must(err)
		w.must(w.Terminate("i-" + a.name))
		w.store.forgetNode(a.name)
		w.store.mu.Lock()
		w.store.nodes[a.name] = operator.Node{Name: a.name}
		w.store.mu.Unlock()
		w.store.changeNode(a.name, func(n *operator.Node) { n.Instance, n.Type, n.Zone = "i-other", "small", w.zone() })
		w.store.remove(a.name) // the garbage collector: its owner is gone
		if took := w.until(30*time.Minute, func() bool { return w.store.node(a.name) == nil }); took > time.Minute {
			t.Errorf("the object of the instance before ends after %s; until then the new one has no addresses", took)
		}
	})
}

// A node is replaced under its name by another instance, and the one before has left an ENI: it is deleted soon, as where a node goes for good.
func TestWhatAReplacedInstanceHasLeftIsDeletedSoon(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(5)
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(3 * time.Minute) // the sweep of the term is over
		w.begunByTheAgent(ctx, w.Driver("i-"+a.name, w.traits), a)
		a.end()
		_, err := w.AddInstance(sim.Instance{ID: "i-other", Type: "small", Subnet: "a"})
		w.must(err)
		w.must(w.Terminate("i-" + a.name))
		w.store.replaceInstance(a.name, "i-other")
		w.store.remove(a.name) // the garbage collector: its owner is gone
		w.until(10*time.Minute, func() bool { return w.store.node(a.name) == nil })
		left := func() (n int) {
			w.View(0, func(tx *sim.Tx) {
				for _, nic := range tx.Interfaces() {
					if nic.Attachment == nil {
						n++
					}
				}
			})
			return n
		}
		if left() == 0 {
			t.Fatal("the instance has left no ENI: the test shows nothing")
		}
		time.Sleep(2 * time.Hour)
		if n := left(); n > 0 {
			t.Errorf("%d ENIs are left after two hours", n)
		}
	})
}
