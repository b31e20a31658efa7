package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

var crdView = func(n *crd.NodeNetwork) (order.View, error) { return crd.View(n) }

// A node gets what it asks for, gives back what it does not need, and then nothing is written or called but the periodic describe.
func TestANodeGetsWhatItAsksFor(t *testing.T) {
	play(t, setup{nodes: 3}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, pods := range []int{5, 25, 3, 12} {
			for _, a := range w.agents {
				a.set(pods)
			}
			t.Logf("%d pods after %s", pods, w.until(3*time.Minute, w.isQuiet))
		}
		time.Sleep(6 * time.Minute) // the next describe shows what the subnet has left
		calls, writes := w.Calls(), w.store.version
		time.Sleep(30 * time.Minute)
		for action, n := range w.Calls() {
			if n > calls[action]+7*3 { // describes of ENIs and subnets
				t.Errorf("%s was called %d times in half an hour in which nothing happened", action, n-calls[action])
			}
		}
		if n := w.store.version - writes; n > 0 {
			t.Errorf("there were %d writes", n)
		}
		if err := w.lead.Healthy(); err != nil {
			t.Error(err)
		}
		w.check()
	})
}
