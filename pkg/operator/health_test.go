package operator_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// An operator that waits for tokens, or for a lease that is another's, is well; one whose call never ends, or whose loop hangs, is not.
func TestItIsNotHealthyWhenNothingMovesAnyMore(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.effect = func(func(context.Context) error, context.Context) error {
			<-ctx.Done() // whatever the call's own limit says
			return ctx.Err()
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.agents[0].set(3)
		time.Sleep(5 * time.Minute)
		if err := w.lead.Healthy(); err != nil {
			t.Errorf("it may still end: %v", err)
		}
		time.Sleep(15 * time.Minute)
		if err := w.lead.Healthy(); err == nil || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("a call hangs: %v", err)
		}
	})
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		hang := &hangingClock{}
		w.leadWith(ctx, func(o *operator.Options) { o.Clock = hang })
		w.begin(ctx)
		time.Sleep(10 * time.Minute)
		if err := w.lead.Healthy(); err != nil {
			t.Error(err)
		}
		hang.stop()
		time.Sleep(10 * time.Minute)
		if err := w.lead.Healthy(); err == nil || !strings.Contains(err.Error(), "nothing was decided") {
			t.Errorf("the loop hangs: %v", err)
		}
	})
}

// hangingClock is a clock by which a loop that sleeps never wakes.
type hangingClock struct {
	operator.Wall
	mu      sync.Mutex
	stopped bool
}

func (c *hangingClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *hangingClock) Sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	c.mu.Lock()
	stopped := c.stopped
	c.mu.Unlock()
	if stopped {
		<-ctx.Done()
		return
	}
	c.Wall.Sleep(ctx, wake, d)
}

// The cloud refuses for the rate: the operator goes slower and tells why, and catches up afterwards.
func TestThrottledItGoesSlower(t *testing.T) {
	play(t, setup{nodes: 20}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(time.Minute, w.isQuiet)
		w.SetFaults(sim.Chance{Action: sim.ActAssign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Throttled}}})
		for _, a := range w.agents {
			a.set(6)
		}
		before := w.Calls()[sim.ActAssign]
		time.Sleep(time.Minute)
		if n := w.Calls()[sim.ActAssign] - before; n > 90 {
			t.Errorf("%d calls in a minute in which all are refused", n)
		}
		w.SetFaults()
		w.until(5*time.Minute, w.isQuiet)
		w.check()
	})
}

// Whoever asks is told of the first describe that fails, before the objects are written; and no more when the next succeeds.
func TestTheReportHasTheFirstFailureOfADescribe(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.Refuse(&sim.Error{Reason: sim.Unavailable})
		w.leadWith(ctx, nil)
		failing := func() string {
			r, err := w.lead.Report(ctx)
			if !errors.Is(err, operator.ErrNotLeading) { // it has just begun
				w.must(err)
			}
			return r.Failing
		}
		w.until(30*time.Second, func() bool { return strings.HasPrefix(failing(), "the last describe failed: ") })
		w.Refuse(nil)
		w.until(time.Minute, func() bool { return failing() == "" })
	})
}

// Describes fail: the objects say so once, and no pod loses anything; when they succeed again the objects say that.
func TestFailingDescribesAreToldOnce(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(4)
		}
		w.until(time.Minute, w.isQuiet)
		time.Sleep(6 * time.Minute)
		writes := w.store.versions()
		w.Refuse(&sim.Error{Reason: sim.Unavailable})
		time.Sleep(20 * time.Minute)
		if n := w.store.versions() - writes; n != len(w.agents) {
			t.Errorf("%d writes, want one for each node", n)
		}
		if c := w.store.node("node-000").Status.Conditions; c[1].Status != "False" || c[1].Reason != "CloudUnavailable" {
			t.Errorf("the conditions: %+v", c)
		}
		w.Refuse(nil)
		w.until(6*time.Minute, func() bool { return w.store.node("node-000").Status.Conditions[1].Status == "True" })
		w.check()
	})
}
