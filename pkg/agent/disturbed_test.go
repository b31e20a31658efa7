package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// compared is how often the agent compared the kernel with the book.
func (n *testNode) compared() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.syncs
}

// Others' changes are put right at once: not at the next resync, and not when the pods
// that start meanwhile have come to rest.
func TestWhatOthersChangeInTheKernelIsComparedAtOnce(t *testing.T) {
	for name, busy := range map[string]bool{"on a quiet node": false, "while pods start": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, large, func(n *testNode) { rarely(&n.conf) })
				defer n.stop()
				sleep(5 * time.Second)
				before := n.compared()
				if busy {
					n.wake()
					sleep(SettleWakes / 2)
				}
				n.disturb <- struct{}{}
				for range 3 {
					sleep(SettleWakes / 4)
					if busy {
						n.wake()
					}
				}
				if got := n.compared() - before; got != 1 {
					t.Errorf("%d comparisons within %s, want 1", got, 3*SettleWakes/4)
				}
				sleep(20 * time.Minute)
				if got := n.compared() - before; got != 1 {
					t.Errorf("%d comparisons in 20 minutes, want that one", got)
				}
			})
		})
	}
}

// A comparison that was asked for puts off no periodic one.
func TestThePeriodicComparisonGoesOnBesideThoseForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Resync, n.conf.Cloud.Describe = time.Minute, time.Hour })
		defer n.stop()
		before := n.compared()
		for range 20 {
			sleep(30 * time.Second)
			n.disturb <- struct{}{}
		}
		if got := n.compared() - before; got < 29 || got > 31 {
			t.Errorf("%d comparisons in ten minutes, want 20 for changes and 10 others", got)
		}
	})
}

// rarely has nothing compared but what is asked for.
func rarely(c *agentconf.Config) { c.Resync, c.Cloud.Describe = time.Hour, time.Hour }
