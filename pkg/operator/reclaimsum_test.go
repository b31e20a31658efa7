package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Two nodes take turns: what one needs the other has idle. Once neither needs anything both may have their idle slots back, however often they
// were asked for them.
func TestNodesThatTookTurnsHaveTheirIdleSlotsBack(t *testing.T) {
	s := setup{nodes: 2, lieIn: []string{"a", "a"}, typ: sim.Type{Name: "small", ENIs: 1, V4: 16}, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/27")}}}
	play(t, s, func(ctx context.Context, w *world) {
		for _, a := range w.agents {
			a.spare = 8
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(6 * time.Minute)
		w.must(w.LeaveFree("a", 0))
		for i := range 20 {
			busy, idle := w.agents[i%2], w.agents[1-i%2]
			idle.mu.Lock()
			idle.spare, idle.pods = 14, 1 // as the real one, it keeps what it asked for last until it is asked for it
			idle.mu.Unlock()
			time.Sleep(50 * time.Second)
			busy.set(13)
			w.until(10*time.Minute, func() bool { return len(busy.used()) == 13 })
		}
		for _, a := range w.agents {
			a.set(1)
		}
		asked := func() int32 { return w.store.node("node-000").Status.Reclaim + w.store.node("node-001").Status.Reclaim }
		if n := asked(); n < 32 {
			t.Fatalf("they were asked for %d slots: no more than their subnet has", n)
		}
		w.must(w.LeaveFree("a", 20))
		w.until(10*time.Minute, func() bool { return asked() == 0 })
		for _, a := range w.agents {
			a.mu.Lock()
			a.spare = 8 // else it would take all that it was ever asked for, which no node can have
			a.mu.Unlock()
		}
		w.until(10*time.Minute, w.isQuiet)
		w.check()
	})
}
