package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// The cloud has detached an ENI and refuses to delete it. It leaves the node cache meanwhile, and a person
// deletes it in the end: from then on nothing is left of the deletion, or the node is busy for good.
func TestADeletionIsForgottenWhenSomebodyElseHasDeletedTheENI(t *testing.T) {
	for name, restarted := range map[string]bool{"in one process": false, "and the agent is started again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, eni.Limits{ENIs: 2, V4: 17, V6: 17}, nil)
				for range 20 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				id := n.attached()[1].ID
				w.account.SetFaults(sim.Chance{Action: sim.ActDelete, Percent: 100, Fault: sim.Fault{Err: cloud.ErrForbidden}})
				for _, k := range n.keys() {
					n.del(k)
				}
				sleep(40 * time.Minute)
				if n.mu.Lock(); len(n.cached.ENIs) != 1 {
					t.Fatalf("the node cache has %d ENIs: the test shows nothing", len(n.cached.ENIs))
				}
				n.mu.Unlock()
				w.account.SetFaults()
				if restarted {
					n.stop()
				}
				c := engine.New(w.account.NodeDriver(n.name), w.account.NodeOptions(n.name))
				must(t, c.DeleteInterface(t.Context(), id))
				if restarted {
					n.serial++
					n.start(-1, false)
				}
				sleep(30 * time.Minute)
				n.stop()
				if left := n.life.agent.mem.Leaving; len(left) > 0 || n.isLeaving() {
					t.Errorf("still leaving: %v", left)
				}
			})
		})
	}
}
