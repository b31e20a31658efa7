package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Nodes that each need a new ENI at once get it side by side: the steps of one node's ENI wait for the account's tokens and for the number of requests
// under way, and for no other node.
func TestENIsOfManyNodesAreMadeSideBySide(t *testing.T) {
	plenty := map[string]cloud.Bucket{}
	for _, action := range []string{sim.ActAssign, sim.ActCreate, sim.ActAttach, sim.ActDescribe, sim.ActSubnets, sim.ActShape, sim.ActModify} {
		plenty[action] = cloud.Bucket{Burst: 10000, PerSecond: 1000}
	}
	took := map[int]time.Duration{}
	for _, nodes := range []int{1, 60} {
		account := sim.Options{CreateTime: time.Second, AttachTime: 5 * time.Second, Latency: map[string]sim.Latency{"": {Base: time.Second}}}
		play(t, setup{nodes: nodes, buckets: plenty, account: account}, func(ctx context.Context, w *world) {
			for _, a := range w.agents {
				a.spare = 0
			}
			w.leadWith(ctx, nil)
			w.begin(ctx)
			for _, a := range w.agents {
				a.set(8)
			}
			w.until(3*time.Minute, w.isQuiet)
			for _, a := range w.agents {
				a.set(12)
			}
			took[nodes] = w.until(30*time.Minute, w.isQuiet)
			w.check()
		})
	}
	if took[60] > 3*took[1] {
		t.Errorf("one node gets its ENI in %s, and 60 nodes get theirs in %s, with tokens for all and 32 requests under way at most", took[1], took[60])
	}
}
