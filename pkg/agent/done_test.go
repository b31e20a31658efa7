package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// The agent could not write down that the ENI was made. The next one finds the intent, and
// the ENI in the node cache: to make it again could give it what pods have given back since,
// by tokens of requests that were answered, or take it from under them.
func TestAnIntentWhoseENIIsInTheCacheIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 2, V4: 17, V6: 17}, nil)
		for range 20 {
			_ = n.add()
		}
		var intent []byte
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			n.retry()
			synctest.Wait()
			n.mu.Lock()
			if intent == nil && w.calls()["CreateInterface"] > 0 {
				intent = slices.Clone(n.memory)
			}
			n.mu.Unlock()
		}
		if left := n.retry(); left != 0 || len(n.attached()) != 2 {
			t.Fatalf("%d pods wait with %d ENIs", left, len(n.attached()))
		}
		n.kill()
		n.memory = intent
		calls := w.calls()["CreateInterface"]
		n.start(-1, false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if more := w.calls()["CreateInterface"] - calls; more > 0 {
			t.Errorf("the ENI was made, and is asked for %d times more", more)
		}
		n.stop()
		if left := n.life.agent.mem.Creates; len(left) > 0 {
			t.Errorf("there are still intents: %+v", left)
		}
	})
}

// What the failures of an intent were is forgotten with it, however it ends: an agent runs for
// months, and each intent has a name of its own.
func TestAnIntentThatIsDoneLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
	a.mem.Creates = []create{{Token: "made"}, {Token: "open"}}
	for _, c := range a.mem.Creates {
		a.backOff(intentOf(c.Token), cloud.ErrLimit, 1)
		a.doubts.barren[c.Token] = 1
	}
	a.view.enis = []cloud.Interface{{ID: "eni-1", Index: 1, Token: "made"}}
	a.endMade(&ipam.State{ENIs: []eni.Interface{{ID: "eni-1", Index: 1}}})
	_, held := a.backoffs[intentOf("made")]
	_, barren := a.doubts.barren["made"]
	if held || barren || a.mem.making("made") {
		t.Errorf("of the ENI that is there are left: intents %+v, holds %v, without effect %v", a.mem.Creates, a.backoffs, a.doubts.barren)
	}
	if !a.mem.making("open") || !a.backoffs.active(intentOf("open"), 1) || a.doubts.barren["open"] != 1 {
		t.Errorf("of the one that is being made are left: intents %+v, holds %v, without effect %v", a.mem.Creates, a.backoffs, a.doubts.barren)
	}
}
