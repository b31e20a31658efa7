package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// The same of Subnets.
func TestASubnetThatIsPrunedIsNotWrittenAgainAndAgain(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.store.answers = 5 * time.Millisecond
		w.store.prunesOf = func(s *crd.SubnetStatus) { s.Zone = "" }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		time.Sleep(time.Minute)
		w.store.mu.Lock()
		before := w.store.told
		w.store.mu.Unlock()
		time.Sleep(time.Minute)
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if n := w.store.told - before; n > 10 {
			t.Errorf("%d writes in a minute of a subnet that nobody uses", n)
		}
	})
}
