package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// leak leaves ENIs of instances behind, some of which are gone, and returns the IDs of those that are nobody's.
func (w *world) leak(ctx context.Context, instances, each int) (leaked map[string]bool) {
	leaked = map[string]bool{}
	for i := range instances {
		id := fmt.Sprintf("i-other-%02d", i)
		_, err := w.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: "a"})
		w.must(err)
		n := engine.New(w.Driver(id, w.traits), engine.Options{SubnetTags: forPods, Cluster: "blue"})
		made, err := n.CreateInterface(ctx, cloud.Create{Token: id, Subnet: "a", V4: 1})
		w.must(err)
		w.must(w.Detach(made.ID))
		if i%each == each-1 {
			w.must(w.Terminate(id))
			leaked[made.ID] = true
		}
	}
	return leaked
}

// left returns how many of the ENIs are still there.
func (w *world) left(ids map[string]bool) (n int) {
	w.View(0, func(tx *sim.Tx) {
		for _, nic := range tx.Interfaces() {
			if ids[nic.ID] {
				n++
			}
		}
	})
	return n
}

// A leader looks for what nodes have left that were gone before it led, of however many instances, and then each day.
func TestEachTermSweepsAtItsBeginAndThenDaily(t *testing.T) {
	play(t, setup{nodes: 1, checks: time.Minute}, func(ctx context.Context, w *world) {
		leaked := w.leak(ctx, 35, 5)
		time.Sleep(time.Hour)
		w.leadWith(ctx, nil)
		w.agents = nil // a day has many of their looks
		took := w.until(20*time.Minute, func() bool { return w.left(leaked) == 0 })
		if took < time.Minute {
			t.Errorf("after %s", took)
		}
		time.Sleep(15 * time.Minute)
		asked := w.Calls()[sim.ActAlive]
		time.Sleep(20 * time.Hour)
		if n := w.Calls()[sim.ActAlive] - asked; n != 0 {
			t.Errorf("%d requests about instances on a day on which nothing happened", n)
		}
		time.Sleep(5 * time.Hour)
		if n := w.Calls()[sim.ActAlive] - asked; n == 0 {
			t.Error("nothing is looked for on the next day")
		}
		w.check()
	})
}

// What a node has left that went with the leader before is too young for the first sweep: nobody else remembers the node, and a day is long.
func TestWhatIsTooYoungForTheFirstSweepIsNotLeftForADay(t *testing.T) {
	play(t, setup{nodes: 1, checks: time.Minute}, func(ctx context.Context, w *world) {
		leaked := w.leak(ctx, 2, 1)
		w.leadWith(ctx, nil)
		if took := w.until(time.Hour, func() bool { return w.left(leaked) == 0 }); took > 20*time.Minute {
			t.Errorf("after %s", took)
		}
	})
}

// An operator that only observes deletes nothing.
func TestAnObserverSweepsNothing(t *testing.T) {
	play(t, setup{nodes: 1, checks: time.Minute}, func(ctx context.Context, w *world) {
		leaked := w.leak(ctx, 2, 1)
		time.Sleep(time.Hour)
		w.leadWith(ctx, func(o *operator.Options) { o.Observe = true })
		time.Sleep(26 * time.Hour)
		if n := w.left(leaked); n != 2 {
			t.Errorf("%d ENIs are left", n)
		}
	})
}

// A Node is gone before the leader comes, and its object waits for the operator with something that goes back: it ends when the instance is
// gone, which the status names.
func TestAnObjectOfANodeThatIsGoneEnds(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(9)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}}})
		a.set(2)
		w.until(10*time.Minute, func() bool { return len(w.store.node(a.name).Status.Releasing) > 0 })
		w.lead.kill()
		a.end()
		w.store.forgetNode(a.name)
		w.must(w.Terminate("i-" + a.name))
		w.store.remove(a.name)
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		took := w.until(5*time.Minute, func() bool { return w.store.node(a.name) == nil })
		if asked := w.Calls()[sim.ActAlive]; took < lease.Settle || asked != 2 {
			t.Errorf("it ended after %s and %d requests about its instance", took, asked)
		}
	})
}

// Of an instance that is alive the object ends when what a late call may take is not in doubt any more, though no describe tells.
func TestAnObjectEndsWhenItsQuarantineIsOver(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(9)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Answer: sim.Lost}})
		a.set(2)
		w.until(10*time.Minute, func() bool { return len(w.store.node(a.name).Status.Quarantined) > 0 })
		w.SetFaults(sim.Chance{Action: sim.ActDescribe, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		a.end()
		w.store.remove(a.name)
		took := w.until(30*time.Minute, func() bool { return w.store.node(a.name) == nil })
		if took < lease.Fence/2 {
			t.Errorf("it ended after %s", took)
		}
	})
}
