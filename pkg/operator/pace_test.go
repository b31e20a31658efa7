package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// Of nodes that come at once with a call each, the i-th is served after (i-B)/r seconds: no order can do better. The engine
// makes no pace of its own, what a node needs more while it waits costs no call, and no call is made twice.
func TestNodesThatComeTogetherAreServedAsFastAsTheBudgetLets(t *testing.T) {
	const nodes, share = 150, 80
	burst, rate := 100*share/100, 5.0*share/100
	s := setup{nodes: nodes, buckets: map[string]cloud.Bucket{sim.ActAssign: {Burst: 100, PerSecond: 5}, sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActShape: {Burst: 1000, PerSecond: 100}},
		account: sim.Options{Latency: map[string]sim.Latency{"": {Base: 100 * time.Millisecond}}}}
	play(t, s, func(ctx context.Context, w *world) {
		var sent []time.Time
		w.admit = func(_ context.Context, action string) {
			if action == sim.ActAssign {
				w.mu.Lock()
				sent = append(sent, time.Now())
				w.mu.Unlock()
			}
		}
		for _, a := range w.agents {
			a.spare = 0
		}
		w.leadWith(ctx, func(o *operator.Options) { o.Share = share })
		w.begin(ctx)
		time.Sleep(time.Minute)
		for _, a := range w.agents {
			a.set(4)
		}
		time.Sleep(5 * time.Second) // while most of them wait they need more
		for _, a := range w.agents[nodes-20:] {
			a.set(6)
		}
		w.until(10*time.Minute, w.isQuiet)
		if len(sent) < nodes || len(sent) > nodes+20 {
			t.Fatalf("%d calls for %d nodes", len(sent), nodes)
		}
		const turn = 1200 * time.Millisecond // agents write within half a second, and of 32 calls at once each takes 0.1 s
		for i, at := range sent[:nodes] {
			bound := time.Duration(max(0, float64(i+1-burst)/rate) * float64(time.Second))
			if took := at.Sub(sent[0]); took > bound+turn {
				t.Fatalf("call %d was sent after %s, the bound is %s", i+1, took, bound)
			}
		}
		w.check()
	})
}

// While pods of one node wait others' warm pools do: the queue goes by class, and by how long something is missing.
func TestWaitingPodsComeBeforeWarmPools(t *testing.T) {
	s := setup{nodes: 30, buckets: map[string]cloud.Bucket{sim.ActAssign: {Burst: 1, PerSecond: 0.5}, sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActShape: {Burst: 1000, PerSecond: 100}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		time.Sleep(15 * time.Second) // all of them fill their warm pools, which takes a minute
		a := w.agents[29]
		a.set(2)
		took := w.until(time.Minute, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.state.Used()) == 2 })
		if took > 6*time.Second {
			t.Errorf("two pods waited for %s behind warm pools", took)
		}
		w.until(10*time.Minute, w.isQuiet)
		w.check()
	})
}
