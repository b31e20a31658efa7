package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/netconf"
)

// compared is how often the agent compared the kernel with the cache.
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

// failing makes the kernel refuse something from now on, nil: nothing any more.
func (n *testNode) failing(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.syncErr = err
}

// What can't be put back is tried again ever more rarely. What is heard meanwhile does
// not wait for that.
func TestAFaultIsRepairedAtOnceWhateverElseFails(t *testing.T) {
	for name, refused := range map[string]error{
		"an object of the node": errors.New("add rule 512: operation not permitted"),
		"a pod's limit":         errors.Join(&netconf.LimitError{Pod: "default/web", Err: errors.New("operation not supported")}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, large, func(n *testNode) { rarely(&n.conf) })
				defer n.stop()
				n.failing(refused)
				n.disturb <- struct{}{}
				sleep(10 * time.Minute)
				before := n.compared()
				sleep(10 * time.Minute)
				if again := n.compared() - before; again < 8 || again > 14 {
					t.Errorf("tried %d times in ten minutes, want once per minute", again)
				}
				if st := n.status(); !strings.Contains(st.Problem, refused.Error()) {
					t.Errorf("the problem is %q, want %q", st.Problem, refused)
				}
				for range 10 {
					sleep(time.Second)
					before = n.compared()
					n.disturb <- struct{}{}
					sleep(100 * time.Millisecond)
					if n.compared() == before {
						t.Error("a new fault is left to the next try of the old one")
					}
				}
				n.failing(nil)
				sleep(2 * time.Minute)
				if st := n.status(); st.Problem != "" || len(st.Backoff) > 0 {
					t.Errorf("all is well, and status tells %q, %q", st.Problem, st.Backoff)
				}
			})
		})
	}
}

// A pod's limit is no reason to keep the pool, or the periodic comparison, from going on.
func TestALimitThatCantBePutBackHoldsUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Resync, n.conf.Cloud.Describe = 10*time.Minute, time.Hour })
		defer n.stop()
		n.failing(&netconf.LimitError{Pod: "default/web", Err: errors.New("operation not supported")})
		sleep(30 * time.Minute)
		n.mu.Lock()
		a := n.life.agent
		unsynced, hold := a.unsynced, a.backoffs[of(compares)]
		n.mu.Unlock()
		if unsynced || hold.times > 0 {
			t.Errorf("the kernel is not in step: %v, %d failures", unsynced, hold.times)
		}
		before := n.compared()
		sleep(time.Hour)
		if again := n.compared() - before; again < 50 || again > 85 {
			t.Errorf("%d comparisons in an hour, want one per minute", again)
		}
	})
}

// rarely has nothing compared but what is asked for.
func rarely(c *agentconf.Config) { c.Resync, c.Cloud.Describe = time.Hour, time.Hour }
