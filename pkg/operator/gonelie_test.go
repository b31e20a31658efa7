package operator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// lies is a driver that tells of instances for some times that they are gone, as an answer that lags does.
type lies struct {
	driver.Driver
	left *atomic.Int32
}

func (d lies) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	states, err := d.Driver.Alive(ctx, instances)
	if d.left.Add(-1) < 0 {
		return states, err
	}
	gone := map[string]cloud.State{}
	for _, id := range instances {
		gone[id] = cloud.Gone
	}
	return gone, nil
}

// One answer that says an instance is gone, and those after it that it is alive: what was accepted of the object that is deleted goes back, the
// object ends, and the agent makes it again.
func TestOneAnswerThatAnInstanceIsGoneHoldsUpNothing(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		var left atomic.Int32
		w.wrap = func(d driver.Driver) driver.Driver { return lies{d, &left} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(9)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		a.set(2)
		w.until(10*time.Minute, func() bool { return len(w.store.node(a.name).Status.Releasing) > 0 })
		uid := w.store.node(a.name).UID
		left.Store(1)
		w.store.remove(a.name)
		time.Sleep(time.Minute)
		if left.Load() >= 0 {
			t.Fatal("nobody has asked about the instance")
		}
		w.SetFaults()
		w.until(time.Hour, func() bool { n := w.store.node(a.name); return n != nil && n.UID != uid })
		w.until(10*time.Minute, w.isQuiet)
		w.check()
	})
}
