package agent

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
)

// Somebody deletes an ENI under its pods, and the cloud gives its primary address to pods on
// another ENI of the node: what is assigned there must come into the cache all the same.
func TestThePrimaryAddressOfAnENIThatIsGoneMayBeAPodsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 4, V4: 9}, nil)
		for range 12 {
			_ = n.add()
		}
		n.all(t, time.Minute)
		n.stop()
		nics := n.attached()
		gone, other := nics[1], nics[len(nics)-1]
		for _, line := range n.cached.Used() {
			w.taken[line.Addr] = line.ENI == gone.Index || line.Addr == other.Addresses[0]
		}
		c := engine.New(w.account.NodeDriver(n.name), w.account.NodeOptions(n.name))
		if err := c.DeleteInterface(t.Context(), gone.ID); err != nil {
			t.Fatal(err)
		}
		if err := c.UnassignAddresses(t.Context(), other.ID, other.Addresses[:1]); err != nil {
			t.Fatal(err)
		}
		again := gone.V4.Primary.Addr()
		if got, err := c.AssignExactly(t.Context(), other.ID, []netip.Addr{again}); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		n.serial++
		n.start(-1, false)
		defer n.stop()
		sleep(30 * time.Minute)
		n.mu.Lock()
		defer n.mu.Unlock()
		if !knownOf(n.cached)[again] || hasENI(n.cached, gone.ID) {
			t.Errorf("the cache has no %s, or still %s: %v", again, gone.ID, n.life.agent.backoffs[of(adopts)].err)
		}
	})
}
