package operator_test

import (
	"context"
	"testing"
	"time"
)

// Somebody has edited a status so that it can't be read. When its node is gone the object ends, as any other.
func TestAnObjectThatCantBeReadEndsToo(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(3)
		w.until(3*time.Minute, w.isQuiet)
		a.end()
		time.Sleep(time.Second)
		n := w.store.node(a.name)
		n.Status.ENIs[0].Addresses[0] = "10.0.0.300"
		w.store.putBack(n)
		time.Sleep(time.Minute)
		w.must(w.Terminate("i-" + a.name))
		w.store.forgetNode(a.name)
		w.store.remove(a.name)
		time.Sleep(time.Hour)
		if w.store.node(a.name) != nil {
			t.Error("an hour after the instance is gone the object waits for its finalizer")
		}
	})
}
