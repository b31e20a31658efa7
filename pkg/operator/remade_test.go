package operator_test

import (
	"context"
	"testing"
	"time"
)

// An object is deleted and made again by its agent, as after a Node was deleted and its kubelet made it again. The agent remembers the revision of the object
// before, above that of the new one; the operator knows of both that nothing of the first is open. Pods that start then get their addresses soon.
func TestPodsOfANodeWhoseObjectIsMadeAgainAreServedSoon(t *testing.T) {
	for _, remembers := range []bool{false, true} {
		play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
			w.leadWith(ctx, nil)
			w.begin(ctx)
			a := w.agents[0]
			a.remembers = remembers
			a.set(5)
			w.until(3*time.Minute, w.isQuiet)
			a.set(9)
			w.until(3*time.Minute, w.isQuiet)
			uid := w.store.node(a.name).UID
			w.store.remove(a.name)
			w.until(3*time.Minute, func() bool { n := w.store.node(a.name); return n != nil && n.UID != uid })
			a.set(16)
			took := w.until(30*time.Minute, func() bool { return len(a.used()) == 16 })
			if took > 2*time.Minute {
				t.Errorf("the agent remembers the revision: %v; pods have waited for %s", remembers, took)
			}
		})
	}
}
