package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// An instance is stopped and goes on with another type, which its Node says: what that one can carry counts from then on, and not only
// once another operator leads.
func TestAnInstanceThatGetsAnotherTypeHasTheLimitsOfThat(t *testing.T) {
	for name, likeBCE := range map[string]bool{"types have limits": false, "instances tell them": true} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{nodes: 2, likeBCE: likeBCE}, func(ctx context.Context, w *world) {
				a := w.agents[0]
				w.leadWith(ctx, nil)
				w.begin(ctx)
				a.set(5)
				w.until(3*time.Minute, w.isQuiet)
				w.AddType(sim.Type{Name: "large", ENIs: 8, V4: 20})
				w.must(w.Resize("i-"+a.name, "large"))
				w.store.changeNode(a.name, func(n *operator.Node) { n.Type = "large" })
				w.until(12*time.Minute, func() bool { return w.store.node(a.name).Status.Limits.Interfaces == 8 })
				a.set(60)
				w.until(5*time.Minute, func() bool { return len(a.used()) == 60 })
				w.check()
			})
		})
	}
}
