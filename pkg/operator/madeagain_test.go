package operator_test

import (
	"context"
	"testing"
	"time"
)

// Somebody deletes the object of a node that lives, and its agent, which remembers what it has seen, makes it again: the node goes on, and does
// not wait as for a store that was put back.
func TestANodeWhoseObjectIsMadeAgainGoesOn(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		a.remembers = true
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(5)
		w.until(3*time.Minute, w.isQuiet)
		uid := w.store.node(a.name).UID
		w.store.remove(a.name)
		w.until(3*time.Minute, func() bool { n := w.store.node(a.name); return n != nil && n.UID != uid })
		a.set(14)
		if took := w.until(10*time.Minute, func() bool { return len(a.used()) == 14 }); took > time.Minute {
			t.Errorf("pods waited for %s", took)
		}
		w.check()
	})
}
