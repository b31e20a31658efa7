package operator_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A renewal of the lease takes its time. While nothing may be sent no token is taken and no node pays for it: when it is renewed all of
// them are served at once.
func TestASlowRenewalCostsNothing(t *testing.T) {
	s := setup{nodes: 4, buckets: map[string]cloud.Bucket{sim.ActAssign: {Burst: 12, PerSecond: 0.001}, sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActShape: {Burst: 100, PerSecond: 20}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(time.Minute, w.isQuiet)
		calls := w.Calls()[sim.ActAssign]
		w.lead.pause()
		time.Sleep(lease.Duration - timeout)
		for _, a := range w.agents {
			a.set(6)
		}
		time.Sleep(3 * time.Second)
		if n := w.Calls()[sim.ActAssign]; n != calls {
			t.Errorf("%d calls while nothing may be sent", n-calls)
		}
		w.lead.goOn()
		served := func() bool {
			return !slices.ContainsFunc(w.agents, func(a *agent) bool { return len(a.used()) < 6 })
		}
		if took := w.until(time.Minute, served); took > 5*time.Second {
			t.Errorf("served %s after the renewal", took)
		}
		_, budget := w.lead.gate.Waiting()
		for _, b := range budget {
			if sent := w.Calls()[sim.ActAssign]; b.Action == sim.ActAssign && int(b.Tokens+0.5) != 12-sent {
				t.Errorf("%.1f tokens are left after %d calls", b.Tokens, sent)
			}
		}
		w.check()
	})
}

// An operator that is told to end sends nothing more, and lets what it has sent end: what that did is written, and the next one
// finds nothing of which nobody knows the outcome.
func TestAnOperatorThatEndsWaitsForItsAnswers(t *testing.T) {
	account := sim.Options{Latency: map[string]sim.Latency{sim.ActAssign: {Base: 2 * time.Second}, sim.ActUnassign: {Base: 2 * time.Second}}}
	play(t, setup{nodes: 3, account: account}, func(ctx context.Context, w *world) {
		var begun atomic.Int64
		w.effect = func(do func(context.Context) error, ctx context.Context) error {
			begun.Add(1)
			return do(ctx)
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(6)
		}
		w.until(time.Minute, func() bool { return begun.Load() > 0 })
		first := w.lead
		before := time.Now()
		first.stop()
		sent := begun.Load()
		<-first.ended
		if took := time.Since(before); took > timeout+3*time.Second || took < time.Second {
			t.Errorf("it ended after %s", took)
		}
		if n := begun.Load(); n != sent {
			t.Errorf("%d calls began after that", n-sent)
		}
		w.must(w.Check())
		got := 0
		for _, a := range w.agents {
			if n := w.store.node(a.name); n != nil {
				got += int(n.Status.Slots)
			}
		}
		if on := len(w.places()); got == 0 || got != on {
			t.Errorf("the objects have %d addresses, the cloud %d", got, on)
		}
		w.leadWith(ctx, nil)
		w.until(2*time.Minute, w.isQuiet)
		w.check()
	})
}

// A request that is never answered does not keep it for ever.
func TestAnOperatorThatEndsDoesNotWaitForEver(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.effect = func(_ func(context.Context) error, ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.agents[0].set(6)
		time.Sleep(12 * time.Second)
		before := time.Now()
		w.lead.stop()
		<-w.lead.ended
		if took := time.Since(before); took > timeout+4*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}
