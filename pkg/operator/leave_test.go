package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A node's object is deleted: while its instance is alive no ENI is touched and no pod loses its address, and the agent makes the object
// again. When the instance is gone its ENIs are deleted, and the object ends.
func TestAnObjectThatIsDeletedEnds(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(14)
		}
		w.until(3*time.Minute, w.isQuiet)
		a := w.agents[0]
		pods, uid := a.used(), w.store.node(a.name).UID
		w.store.remove(a.name)
		w.until(3*time.Minute, func() bool { n := w.store.node(a.name); return n != nil && n.UID != uid && w.isQuiet() })
		if got := a.used(); !slices.Equal(got, pods) {
			t.Errorf("pods have %v, and had %v", got, pods)
		}
		w.check()

		gone := w.agents[1]
		w.begunByTheAgent(ctx, w.Driver("i-"+gone.name, w.traits), gone)
		gone.end()
		w.must(w.Terminate("i-" + gone.name))
		w.store.remove(gone.name)
		w.until(5*time.Minute, func() bool { return w.store.node(gone.name) == nil })
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
			t.Error("the instance has left no ENI: the test shows nothing")
		}
		w.until(30*time.Minute, func() bool { return left() == 0 })
		if err := w.lead.Healthy(); err != nil {
			t.Error(err)
		}
	})
}

// The leader dies while an object ends of which it has accepted releases: the next one finishes those, and the object ends.
func TestAnObjectThatIsDeletedIsEndedByTheNextLeader(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(20)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		a.set(2)
		w.until(time.Minute, func() bool { return len(w.store.node(a.name).Status.Releasing) > 0 })
		uid := w.store.node(a.name).UID
		w.store.remove(a.name)
		w.lead.kill()
		w.SetFaults()
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		w.until(15*time.Minute, func() bool { n := w.store.node(a.name); return n != nil && n.UID != uid && w.isQuiet() })
		w.check()
	})
}

// A Node comes back with another instance: nothing of the one before is its own.
func TestANodeWithAnotherInstanceBeginsFromScratch(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(5)
		w.until(3*time.Minute, w.isQuiet)
		_, err := w.AddInstance(sim.Instance{ID: "i-other", Type: "small", Subnet: "a"})
		w.must(err)
		before := w.Calls()[sim.ActUnassign]
		w.must(w.Terminate("i-" + a.name))
		w.store.replaceInstance(a.name, "i-other")
		w.until(10*time.Minute, func() bool {
			n := w.store.node(a.name)
			return n.Status.Instance == "i-other" && n.Status.Slots >= n.Spec.Slots && len(n.Status.ENIs) == 1
		})
		if n := w.Calls()[sim.ActUnassign] - before; n != 0 {
			t.Errorf("%d calls took addresses", n)
		}
		w.must(w.Check())
	})
}
