package agent

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// A new agent knows the most that pods needed within the delay, whatever was written down for
// another reason since: it gives no address back sooner than the agent before it would have.
func TestARestartForgetsNoPeak(t *testing.T) {
	for _, after := range []time.Duration{2 * time.Second, 10 * time.Second, 40 * time.Second, 100 * time.Second} {
		t.Run(fmt.Sprint("killed ", after, " after pods left"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, large, inCluster)
				sleep(10 * time.Minute) // long calm, so that nothing else holds addresses
				for i := range 40 {
					n.bind(fmt.Sprintf("pod-%d", i))
				}
				sleep(5 * time.Minute)
				full := n.total()
				n.mu.Lock()
				pods := slices.Clone(n.api.pods)
				n.mu.Unlock()
				for _, p := range pods {
					n.unbind(p)
				}
				sleep(after)
				n.kill()
				n.start(-1, false)
				defer n.stop()
				sleep(n.conf.Pool.Scale.Delay - after - 2*time.Second)
				if got := n.total(); got != full {
					t.Errorf("%d addresses before the delay is over, want %d", got, full)
				}
			})
		})
	}
}

// turn is what happens to pods, or to one of two agents.
type turn struct {
	pods int           // that there are from now on
	kill bool          // one agent is killed
	down time.Duration // until the next one starts
	wait time.Duration // until the next turn
}

func drawTurns(t *rapid.T) []turn {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) turn {
		return turn{rapid.IntRange(0, 60).Draw(t, "pods"), rapid.Bool().Draw(t, "kill"),
			time.Duration(rapid.IntRange(0, 5000).Draw(t, "down")) * time.Millisecond,
			time.Duration(rapid.SampledFrom([]int{1, 100, 300, 2000, 15_000, 50_000, 130_000}).Draw(t, "wait")) * time.Millisecond}
	}), 5, 15).Draw(t, "turns")
}

// Two nodes have the same pods. However often the agent of one is killed, it releases nothing
// that the other one keeps.
func TestANodeWhoseAgentIsKilledReleasesNothingEarlier(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		turns := drawTurns(r)
		var wrong error
		synctest.Test(t, func(t *testing.T) { wrong = releasesNothingEarlier(t, turns) })
		if wrong != nil {
			r.Fatal(wrong)
		}
	})
}

func releasesNothingEarlier(t *testing.T, turns []turn) error {
	w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"))
	add := func(name string) *testNode {
		n := w.addNode(testConfig(name), sim.NodeSpec{Limits: eni.Limits{ENIs: 2, V4: 100}, Subnet: "subnet-a"})
		// Each would step down in a rhythm of its own, and see a burst where it has less than the other.
		c := &n.conf.Pool.Scale
		c.ReleaseInterval, c.ShrinkPercent, c.BurstPercent = time.Second, 10_000, 100_000
		inCluster(n)
		n.start(-1, false)
		return n
	}
	on, killed := add("on"), add("killed")
	p := pair{on: on, killed: killed}
	defer func() { on.stop(); killed.stop() }()
	sleep(3 * time.Minute)
	for i, turn := range turns {
		on.have(turn.pods)
		killed.have(turn.pods)
		if turn.kill {
			sleep(100 * time.Millisecond) // a tick has seen them
			killed.kill()
			sleep(turn.down)
			killed.start(-1, false)
			sleep(2 * time.Second) // what comes and goes before its first looks at the cloud, each of 0.3 s, have ended it does not see
		}
		for end := w.now() + turn.wait; w.now() < end; {
			sleep(min(700*time.Millisecond, end-w.now()))
			if err := p.compare(); err != nil {
				return fmt.Errorf("%w; %d pods, turn %d of %+v", err, turn.pods, i, turns)
			}
		}
	}
	return nil
}

// pair is a node and one that has the same pods, whose agent is killed.
type pair struct {
	on, killed *testNode
	since      time.Duration // that the killed one's agent wants less than the other's
}

// compare returns an error if the killed one's agent releases what the other keeps for more than
// the second that a demand is known to.
func (p *pair) compare() error {
	got, kept := p.killed.status(), p.on.status()
	switch now := p.on.w.now(); {
	case got.Reason == "" || got.Target >= kept.Target || got.Target >= p.killed.total():
		p.since = 0
	case p.since == 0:
		p.since = now
	case now-p.since > time.Second:
		return fmt.Errorf("the agent that was killed has a target of %d for %d addresses, the other one of %d", got.Target, p.killed.total(), kept.Target)
	}
	return nil
}

// have makes that many pods of the cluster the node's.
func (n *testNode) have(pods int) {
	n.mu.Lock()
	for len(n.api.pods) < pods {
		n.serial++
		n.api.pods = append(n.api.pods, eni.Pod{UID: fmt.Sprintf("uid-%d", n.serial), Namespace: "default", Name: fmt.Sprint("pod-", n.serial)})
	}
	n.api.pods = slices.Clone(n.api.pods[:pods])
	n.mu.Unlock()
	n.hear()
}

// The memory is written down when the next agent would go by something wrong, not with each tick.
func TestAnIdleNodeWritesNoMemoryAndABusyOneLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		defer n.stop()
		n.crowd(9)
		sleep(10 * time.Minute)
		saves := func(what func()) int {
			n.mu.Lock()
			before := n.saves
			n.mu.Unlock()
			for range 720 {
				what()
				sleep(5 * time.Second)
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.saves - before
		}
		if got := saves(func() {}); got > 0 {
			t.Errorf("%d writes in an idle hour", got)
		}
		if got := saves(func() { // a pod goes, another one comes
			n.unbind(n.api.pods[0])
			n.del(n.keys()[0])
			n.crowd(1)
		}); got > 12 {
			t.Errorf("%d writes in an hour in which 720 pods were replaced", got)
		} else {
			t.Logf("%d writes in an hour in which 720 pods were replaced", got)
		}
	})
}

// An agent that was killed between two steps down knows nothing of the time since: the next one
// sees for itself what pods need before it takes the second step.
func TestANewAgentWatchesBeforeItReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, inCluster)
		sleep(10 * time.Minute)
		n.have(60)
		sleep(5 * time.Minute)
		n.have(0)
		full := n.total()
		for n.total() == full {
			sleep(time.Second)
		}
		sleep(2 * time.Second) // what the call takes
		n.kill()
		left := n.total()
		sleep(time.Minute)
		n.start(-1, false)
		defer n.stop()
		for range n.conf.Pool.Scale.Stable/time.Second - 2 {
			if sleep(time.Second); n.total() < left {
				t.Fatalf("%d of %d addresses are left", n.total(), left)
			}
		}
		if sleep(5 * time.Minute); n.total() != 16 {
			t.Errorf("%d addresses for no pods", n.total())
		}
	})
}
