package operator_test

import (
	"context"
	"testing"

	"github.com/enipool/enipool/pkg/operator"
)

// A node is gone and its object stays, as one from a backup does that no Node owns: its pods, which nobody starts any more, keep nobody waiting and
// cost nobody anything, whoever leads. When the Node is there again they count as before.
func TestAnObjectWhoseNodeIsGoneKeepsNobodyWaiting(t *testing.T) {
	var node operator.Node
	lose := func(w *world, name string) { node = w.store.nodes[name]; w.store.forgetNode(name) }
	playLost(t, 2, lose, func(ctx context.Context, lost lostNode) {
		check := func() {
			t.Helper()
			lost.check(ctx)
			if now, err := lost.lead.Report(ctx); err != nil || now.Waiting > 0 {
				t.Errorf("%d pods wait, %v", now.Waiting, err)
			}
		}
		check()
		lost.lead.stop()
		<-lost.lead.ended
		lost.leadWith(ctx, nil)
		check()
		lost.store.changeNode(lost.node.name, func(n *operator.Node) { *n = node })
		lost.checkFound(ctx)
	})
}
