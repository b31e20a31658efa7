package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// The installed kinds are older than the operator, as where a tool that installs it never upgrades kinds: the API server prunes a field that it
// does not know. What can't be kept is not written again and again.
func TestAStatusThatIsPrunedIsNotWrittenAgainAndAgain(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.store.answers = 5 * time.Millisecond
		w.store.prunes = func(s *crd.NodeNetworkStatus) { s.InstanceType = "" }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(5)
		time.Sleep(3 * time.Minute)
		if n := len(a.used()); n < 5 {
			t.Errorf("%d of 5 pods have addresses after three minutes", n)
		}
		writes := func(d time.Duration) int {
			before := w.store.writesOf(a.name)
			time.Sleep(d)
			return w.store.writesOf(a.name) - before
		}
		if n := writes(time.Minute); n > 5 {
			t.Errorf("%d writes in a minute of a node of five pods", n)
		}
		a.set(1000) // some wait for ever
		time.Sleep(5 * time.Minute)
		if n := writes(time.Minute); n > 30 {
			t.Errorf("%d writes in a minute of a node whose pods wait", n)
		}
	})
}
