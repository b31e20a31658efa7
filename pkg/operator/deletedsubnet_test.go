package operator_test

import (
	"context"
	"testing"
	"time"
)

// Somebody prunes the Subnet objects, which no repository has: the operator makes them again at once, and not with the next describe of everything.
func TestASubnetObjectThatIsPrunedIsMadeAgain(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(5)
		w.until(3*time.Minute, w.isQuiet)
		w.store.removeSubnet("a")
		a.set(20)
		took := w.until(10*time.Minute, func() bool { return len(a.used()) == 20 })
		if took > 30*time.Second {
			t.Errorf("pods waited for %s", took)
		}
		w.check()
	})
}
