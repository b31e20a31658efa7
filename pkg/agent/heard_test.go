package agent

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Pods end, and the node gives addresses back: whether the API server keeps whose status the agent has read or has older kinds, which do not. A
// field that is not kept is not written without end.
func TestAnAgentSaysWhoseStatusItHasRead(t *testing.T) {
	for name, older := range map[string]bool{"kinds of today": false, "older kinds": true} {
		t.Run(name, func(t *testing.T) {
			operatedWith(t, 40, func(t *testing.T, n *testNode, op *testOperator) {
				before := 0
				op.set(func(op *testOperator) { op.older, before = older, op.writes })
				for _, k := range n.keys()[5:] {
					n.del(k)
				}
				n.w.account.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: cloud.ErrForbidden}})
				sleep(10 * time.Minute) // it goes back for that long
				n.w.account.SetFaults()
				sleep(10 * time.Minute)
				n.must(t)
				now := op.object()
				if have := len(n.cached.Addresses); have > 30 || len(now.Spec.Release)+len(now.Status.Releasing) > 0 {
					t.Errorf("%d addresses are left, %v goes back, %v is accepted", have, now.Spec.Release, now.Status.Releasing)
				}
				if said := now.Spec.SeenEpoch; said != now.Status.Epoch && !older {
					t.Errorf("the agent has read of leader %d, it says %d", now.Status.Epoch, said)
				}
				if writes := op.writes - before; writes > 100 {
					t.Errorf("%d writes", writes)
				}
			})
		})
	}
}
