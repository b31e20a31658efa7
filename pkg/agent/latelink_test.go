package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The link of one ENI has not come for hours. That of the next one, which pods wait for, is looked for
// as often as any.
func TestALinkThatNeverComesDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, d, _ := withOneENI(t, sim.NodeSpec{Limits: smallENIs})
		defer n.stop()
		var late []string // MACs of the ENIs from here on
		d.attach = func(id string) {
			w.account.View(0, func(tx *sim.Tx) {
				i, err := tx.Interface(id)
				n.mu.Lock()
				defer n.mu.Unlock()
				if err == nil && !n.hidden[i.MAC] {
					n.hidden[i.MAC], late = true, append(late, i.MAC)
				}
			})
		}
		attached := func(nth int) (cloud.Interface, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			at := slices.IndexFunc(n.attached(), func(nic cloud.Interface) bool { return len(late) > nth && nic.MAC == late[nth] && nic.Index >= 0 })
			if at < 0 {
				return cloud.Interface{}, false
			}
			return n.attached()[at], true
		}
		for nth := range 2 {
			for range 300 {
				if _, is := attached(nth); is {
					break
				}
				_ = n.add()
				sleep(time.Second)
			}
			if nth == 0 {
				sleep(3 * time.Hour) // its link never comes
			}
		}
		if _, is := attached(1); !is {
			t.Fatal("no second ENI was made")
		}
		sleep(time.Second)
		a := n.life.agent
		if pause := linkPause(n.now() - a.links.since); len(a.links.awaited) != 2 || pause > 2*soon {
			t.Errorf("links missing are %q, and it is looked for them each %s", a.links.awaited, pause)
		}
	})
}
