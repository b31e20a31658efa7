package operator_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/operator"
)

// A Node gets its provider ID when the cloud's controller has seen it, seconds after its agent has started: that is no event.
func TestALateProviderIDIsNoWarning(t *testing.T) {
	play(t, setup{nodes: 3}, func(ctx context.Context, w *world) {
		for _, a := range w.agents {
			w.store.changeNode(a.name, func(n *operator.Node) { n.Instance, n.Type, n.Zone = "", "", "" })
		}
		var mu sync.Mutex
		var told []operator.Notice
		w.leadWith(ctx, func(o *operator.Options) {
			o.Tell = func(n operator.Notice) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, n)
			}
		})
		time.Sleep(15 * time.Second)
		w.begin(ctx)
		time.Sleep(3 * time.Second)
		for _, a := range w.agents {
			w.store.changeNode(a.name, func(n *operator.Node) { n.Instance = "i-" + n.Name })
		}
		time.Sleep(3 * time.Second)
		for _, a := range w.agents {
			w.store.changeNode(a.name, func(n *operator.Node) { n.Type, n.Zone = "small", w.zone() })
			a.set(20)
		}
		if took := w.until(5*time.Minute, w.isQuiet); took > time.Minute {
			t.Errorf("quiet after %s", took)
		}
		mu.Lock()
		defer mu.Unlock()
		if n := len(told); n > 0 {
			t.Errorf("%d notices: %+v", n, told)
		}
		w.check()
	})
}
