package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A node leaves the cluster while something of it goes back, its instance lives on without an agent, and another operator comes to lead, of
// which that agent never reads. Its object ends all the same, once nothing of before can have an effect any more.
func TestANodeThatLeavesBeforeItsAgentHasReadOfTheLeaderEnds(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		first := w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(9)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		a.set(2)
		w.until(10*time.Minute, func() bool { return len(w.store.node(a.name).Status.Releasing) > 0 })
		a.end()
		first.kill()
		w.SetFaults()
		time.Sleep(15 * time.Second)
		w.leadWith(ctx, nil)
		w.store.forgetNode(a.name)
		w.store.remove(a.name)
		if took := w.until(30*time.Minute, func() bool { return w.store.node(a.name) == nil }); took < lease.Fence-time.Minute {
			t.Errorf("it ends after %s, when calls of before may still have an effect", took)
		}
		w.must(w.Check())
	})
}
