package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/operator"
)

// A node dies while its pods wait in a full subnet. The last addresses go to pods of nodes that live, though they wait for less long, and nobody
// gives back what it has for pods that nobody will start. When the cluster reaches the node again its pods count as before.
func TestPodsOfANodeThatTheClusterDoesNotReachWaitBehindOthers(t *testing.T) {
	cut := func(w *world, name string, is bool) {
		w.store.changeNode(name, func(n *operator.Node) { n.Cut = is })
	}
	lose := func(w *world, name string) { cut(w, name, true) }
	playLost(t, 3, lose, func(ctx context.Context, lost lostNode) {
		lost.check(ctx)
		last := lost.agents[2]
		had := len(last.addresses())
		last.set(had + 2)
		lost.until(10*time.Minute, func() bool { return len(last.used()) == had+2 })
		cut(lost.world, lost.node.name, false)
		lost.checkFound(ctx)
	})
}
