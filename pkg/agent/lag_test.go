package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// givenBack is a node on a cloud that lags, whose agent has just given back some of the
// addresses that it had before, full of them.
func givenBack(t *testing.T, seed uint64) (w *world, n *testNode, full int) {
	t.Helper()
	w = newWorld(t, sim.Options{Seed: seed, Lag: 6 * time.Second, Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.1.0/24"))
	n = w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	n.start(-1, false)
	for range 40 {
		_ = n.add()
	}
	for range 30 {
		time.Sleep(time.Second)
		n.retry()
	}
	full = n.total()
	for _, k := range n.keys() {
		n.del(k)
	}
	for range 10_000 {
		if time.Sleep(100 * time.Millisecond); n.total() < full {
			return w, n, full
		}
	}
	t.Fatalf("none of %d addresses was given back", full)
	return w, n, full
}

// The cloud shows for some seconds what an agent has given back, also to the next agent,
// which must not take it for its own.
func TestWhatAnAgentGaveBackTheNextOneDoesNotTakeIn(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			_, n, full := givenBack(t, seed)
			small := n.total()
			n.kill()
			n.start(-1, false)
			for range 80 {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				if is := n.total(); is > small {
					t.Errorf("seed %d: the next agent begins with %d addresses where the last one left %d of %d", seed, is, small, full)
					break
				}
			}
			n.stop()
		})
	}
}
