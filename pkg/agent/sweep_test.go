package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// A person detaches an ENI whose addresses pods have, and means to attach it again. While it
// is away another one may get its place.
func TestAnENIThatIsDetachedForAWhileIsNotDeletedUnderItsPods(t *testing.T) {
	for name, more := range map[string]int{"while nothing happens": 0, "while more pods come": 8} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n, _, first := withOneENI(t, sim.NodeSpec{Limits: smallENIs})
				defer n.stop()
				sleep(time.Hour)
				n.mu.Lock()
				for _, line := range n.cached.Addresses {
					if line.ENI == 1 && line.State == eni.Used {
						w.taken[line.Addr] = true
					}
				}
				n.mu.Unlock()
				if len(w.taken) == 0 {
					t.Fatal("no pod has an address of the ENI")
				}
				if err := w.account.Detach(first); err != nil {
					t.Fatal(err)
				}
				for range more {
					_ = n.add()
				}
				sleep(time.Minute)
				n.retry()
				sleep(time.Hour)
				if left := w.enisWith(func(i sim.Interface) bool { return i.ID == first }); len(left) == 0 {
					t.Errorf("ENI %s is deleted, and %d pods have its addresses", first, len(w.taken))
				}
				n.mu.Lock()
				var users []eni.Key
				for k, p := range n.pods {
					if w.taken[p.addrs[0]] {
						users = append(users, k)
					}
				}
				n.mu.Unlock()
				for _, k := range users { // others stay
					n.del(k)
				}
				sleep(time.Hour)
				if left := w.enisWith(func(i sim.Interface) bool { return i.ID == first }); len(left) > 0 {
					t.Errorf("ENI %s is left when the pods have gone", first)
				}
			})
		})
	}
}

// Who detaches an ENI that no pod uses has the time to attach it again.
func TestAnENICountsAsLeakedFromWhenItIsAttachedNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, _, first := withOneENI(t, sim.NodeSpec{Limits: smallENIs})
		defer n.stop()
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(n.conf.LeakAge)
		at := w.enisWith(func(i sim.Interface) bool { return i.ID == first && i.At("n1") })
		if len(at) == 0 {
			t.Fatal("the ENI has gone with its pods")
		}
		if err := w.account.Detach(first); err != nil {
			t.Fatal(err)
		}
		sleep(n.conf.LeakAge - time.Minute)
		if left := w.enisWith(func(i sim.Interface) bool { return i.ID == first }); len(left) == 0 {
			t.Errorf("ENI %s is deleted before it is away for %s", first, n.conf.LeakAge)
		}
	})
}
