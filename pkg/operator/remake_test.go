package operator_test

import (
	"context"
	"testing"
	"time"
)

// Somebody deletes the objects of subnets, and perhaps their kind for a while. Once they can be made again nodes get ENIs soon: long before the
// next describe of everything.
func TestObjectsOfSubnetsAreMadeAgain(t *testing.T) {
	for name, away := range map[string]time.Duration{"objects": 0, "kinds": 100 * time.Second} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
				w.leadWith(ctx, nil)
				w.begin(ctx)
				w.agents[0].set(4)
				w.until(3*time.Minute, w.isQuiet)
				time.Sleep(10 * time.Second)
				kindless := func(is bool) {
					w.store.mu.Lock()
					w.store.kindless = is
					w.store.mu.Unlock()
				}
				kindless(away > 0)
				w.store.forgetSubnets()
				time.Sleep(away)
				kindless(false)
				w.agents[0].set(20)
				if took := w.until(5*time.Minute, w.isQuiet); took > 45*time.Second {
					t.Errorf("new ENIs came after %s", took)
				}
			})
		})
	}
}
