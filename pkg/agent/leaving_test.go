package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// addAndRetry starts pods, and tries for twenty seconds, each second, those that wait.
func (n *testNode) addAndRetry(pods int) {
	for range pods {
		_ = n.add()
	}
	for range 20 {
		time.Sleep(time.Second)
		n.retry()
	}
}

// The deletion of an ENI is done, its answer lost, and the next one refused for half a
// minute: the ENI leaves the cache meanwhile, and what is remembered of it goes with it.
func TestAnENIThatIsGoneIsNotRememberedAsLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 2, V4: 17, V6: 17}, nil)
		n.addAndRetry(20)
		if left := n.retry(); left != 0 || len(n.attached()) != 2 {
			t.Fatalf("%d pods wait with %d ENIs", left, len(n.attached()))
		}
		w.account.FailNext(sim.ActDelete, sim.Fault{Answer: sim.Lost}, sim.Fault{Err: cloud.ErrForbidden})
		for _, k := range n.keys() {
			n.del(k)
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		n.stop()
		if calls := w.calls()["DeleteInterface"]; len(n.attached()) != 1 || len(n.cached.ENIs) != 1 || calls < 2 {
			t.Fatalf("%d ENIs, %d in the cache, %d deletions", len(n.attached()), len(n.cached.ENIs), calls)
		}
		if left := n.life.agent.mem.Leaving; len(left) > 0 {
			t.Errorf("still leaving: %v", left)
		}
		for key := range n.life.agent.backoffs {
			if key.kind == anENI {
				t.Errorf("what was refused of it is kept for good: %s", key)
			}
		}
	})
}

// The ENI is gone, and as long as the memory can't be written the cache keeps it. Its
// addresses are not taken back for pods that come then.
func TestAnENIThatIsGoneGivesPodsNoAddressesWhileTheMemoryCantBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 2, V4: 17, V6: 17}, nil)
		n.addAndRetry(20)
		for _, k := range n.keys() {
			n.del(k)
		}
		for w.account.Calls()[sim.ActDetach] == 0 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		n.mu.Lock()
		n.full = true
		n.mu.Unlock()
		for len(n.attached()) > 1 || w.account.Calls()[sim.ActDelete] == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for range 30 {
			_ = n.add()
		}
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			n.retry()
			synctest.Wait()
			if err := w.check(); err != nil {
				t.Error(err)
				break
			}
		}
		n.stop()
	})
}

// An agent is killed while it deletes an ENI. The next one takes what is on its way back for
// releases that have begun; when the ENI is gone there is none of them any more.
func TestReleasesEndWithTheENIThatTheyWereOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 4, V4: 9}, nil)
		for range 20 {
			_ = n.add()
		}
		n.all(t, time.Minute)
		n.stop()
		had := len(n.attached())
		n.startUntil(1, false, sim.ActDetach)
		for _, key := range n.keys() {
			n.del(key)
		}
		sleep(time.Hour)
		if !n.isDead() {
			t.Fatal("no ENI was detached")
		}
		n.kill()
		n.start(-1, false)
		sleep(time.Hour)
		n.stop()
		if now := len(n.attached()); now >= had {
			t.Fatalf("%d ENIs are left of %d", now, had)
		}
		if left := n.life.agent.mem.Begun; len(left) > 0 {
			t.Errorf("the memory has releases of what is gone: %v", left)
		}
	})
}

// Before the cloud is asked to delete an ENI, pods come that need its addresses. As long as the
// deletion is held up they get them: the cloud has not heard of it.
func TestAnENIWhoseDeletionIsHeldUpServesPodsThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 2, V4: 17, V6: 17}, nil)
		defer n.stop()
		for range 30 {
			_ = n.add()
		}
		n.all(t, time.Minute)
		hold := func(err error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.syncErr = err
		}
		hold(errors.New("the kernel is busy"))
		for _, k := range n.keys() {
			n.del(k)
		}
		for !n.isLeaving() {
			if sleep(100 * time.Millisecond); w.now() > 3*time.Hour {
				t.Fatal("no ENI is deleted")
			}
		}
		sleep(time.Minute)
		for range 30 {
			_ = n.add()
		}
		for left, began := n.retry(), w.now(); left > 0; left = n.retry() {
			if sleep(100 * time.Millisecond); w.now() > began+time.Second {
				t.Fatalf("%d pods wait for addresses of an ENI that nobody deletes", left)
			}
		}
		if n.isLeaving() {
			t.Error("the next agent would go on with the deletion")
		}
		hold(nil)
		sleep(time.Hour)
		if err := w.check(); err != nil || len(n.attached()) != 2 {
			t.Errorf("%d ENIs, %v", len(n.attached()), err)
		}
	})
}

// isLeaving tells whether the agent has written down that it deletes an ENI.
func (n *testNode) isLeaving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(string(n.memory), `"leaving"`)
}

// A new agent's deletion is refused, so a describe is to show what an earlier agent's did, 40 seconds after the
// start. An assign whose outcome is unknown asks for a look of its own: each comes, whichever is first.
func TestTheLookForAnEarlierDeletionComesBesideThatForAnUnknownOutcome(t *testing.T) {
	for name, began := range map[string]time.Duration{"after it": 5 * time.Second, "before it": 35 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = time.Hour })
				sleep(time.Minute)
				n.stop()
				n.memory = []byte(`{"leaving":{"eni-1":false}}`)
				a := n.agent(&life{killAt: -1}, w.log)
				start := a.Now()
				a.Tick(t.Context())
				a.applyResult(result{call: &call{key: eniKey("eni-1"), op: "DeleteInterface", id: "eni-1"}, err: cloud.ErrForbidden}, a.Now())
				sleep(began)
				a.applyResult(result{call: &call{key: eniKey("eni-0"), op: "AssignAddresses", id: "eni-0"}, err: cloud.ErrUnknown}, a.Now())
				asked, heard := a.Now()+a.conf.Settle, a.heardBy("eni-1")
				looked := map[time.Duration]bool{}
				for a.Now() < start+time.Minute {
					sleep(min(a.Tick(t.Context()), time.Second))
					looked[a.view.start] = true
				}
				if !looked[asked] || !looked[heard] {
					t.Errorf("no look at %s for the unknown outcome, or at %s for the earlier deletion: %v", asked, heard, looked)
				}
			})
		})
	}
}
