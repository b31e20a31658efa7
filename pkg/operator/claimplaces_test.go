package operator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/pool"
)

// tiny has one ENI with five places.
var tiny = sim.Type{Name: "tiny", ENIs: 1, V4: 6, V6: 6}

// general returns how many addresses of a node are the pool's.
func (c *claimStore) general(a *agent) int {
	reserved := c.w.store.node(a.name).Status.Reserved
	return len(a.addresses()) - len(reserved)
}

// Each place of a node is taken: an idle address leaves its own to one of a topology, and is there again when that has gone.
func TestAnIdleAddressLeavesItsPlaceToATopology(t *testing.T) {
	for name, pod := range map[string]struct{ pod, of string }{"a claim": {"db-0", "fixed"}, "an Elastic one": {"x-0", "elastic"}} {
		t.Run(name, func(t *testing.T) {
			playClaims(t, setup{typ: tiny}, func(ctx context.Context, w *world, c *claimStore) {
				a := w.agents[0]
				a.set(3)
				w.until(2*time.Minute, func() bool { return len(a.addresses()) == 5 && w.isQuiet() })
				c.run(pod.pod, "node-000", pod.of)
				t.Logf("after %s", c.awaitPod(90*time.Second, pod.pod, "node-000"))
				c.wait(3 * time.Minute)
				if !c.runs(pod.pod, "node-000") || len(a.used()) != 3 || c.general(a) != 4 {
					t.Errorf("beside it the pool has %d addresses, and pods have %d of them", c.general(a), len(a.used()))
				}
				if asked := w.store.node("node-000").Status.Reclaim; asked != 0 {
					t.Errorf("it is asked to do without %d for ever", asked)
				}
				c.stop(pod.pod)
				c.setSets()
				w.until(5*time.Minute, func() bool { return c.general(a) == 5 })
			})
		})
	}
}

// The place that an idle address leaves is not the pool's, though its own pods wait for one at that moment.
func TestThePoolDoesNotTakeAPromisedPlace(t *testing.T) {
	playClaims(t, setup{typ: tiny}, func(ctx context.Context, w *world, c *claimStore) {
		a := w.agents[0]
		a.set(3)
		w.until(2*time.Minute, func() bool { return len(a.addresses()) == 5 && w.isQuiet() })
		c.run("db-0", "node-000", "fixed")
		w.until(time.Minute, func() bool { return len(w.store.node("node-000").Status.Releasing) > 0 })
		a.set(6)
		c.awaitPod(2*time.Minute, "db-0", "node-000")
		c.wait(time.Minute)
		if len(a.used()) != 4 {
			t.Errorf("%d pods have an address", len(a.used()))
		}
	})
}

// Two pods want a place, and there is one idle address that can go: one gets it, the other is told.
func TestWhoGetsNoPlaceIsToldHowManyAreKept(t *testing.T) {
	playClaims(t, setup{typ: tiny}, func(ctx context.Context, w *world, c *claimStore) {
		a := w.agents[0]
		a.set(3)
		w.until(2*time.Minute, func() bool { return len(a.addresses()) == 5 && w.isQuiet() })
		c.run("db-0", "node-000", "fixed")
		c.run("db-1", "node-000", "fixed")
		w.until(3*time.Minute, func() bool { return c.runs("db-0", "node-000") || c.runs("db-1", "node-000") })
		c.wait(time.Minute)
		c.mu.Lock()
		said := strings.Join(c.heard, "\n")
		c.mu.Unlock()
		if !strings.Contains(said, " NoPlace: no ENI of node-000 can carry") || !strings.Contains(said, "(0 places are kept for topologies: pool.topologyPlaces of its agent.yaml)") {
			t.Errorf("people heard:\n%s", said)
		}
		if len(a.used()) != 3 {
			t.Errorf("%d pods of the pool have an address", len(a.used()))
		}
	})
}

// What is kept for topologies general pods never get, whoever comes first.
func TestClaimsKeepTheirPlaces(t *testing.T) {
	for _, first := range []string{"the pool", "the claims", "both"} {
		t.Run(first, func(t *testing.T) {
			playClaims(t, setup{typ: tiny, conf: pool.Config{TopologyPlaces: 2}}, func(ctx context.Context, w *world, c *claimStore) {
				a := w.agents[0]
				wants := func() { a.set(5) }
				if first == "the claims" {
					a.set(0)
				} else {
					wants()
				}
				if first == "the pool" {
					w.until(2*time.Minute, func() bool { return len(a.used()) == 3 })
					c.wait(time.Minute)
				}
				for _, name := range []string{"db-0", "db-1"} {
					c.run(name, "node-000", "fixed")
				}
				for _, name := range []string{"db-0", "db-1"} {
					c.awaitPod(2*time.Minute, name, "node-000")
				}
				wants()
				w.until(2*time.Minute, func() bool { return len(a.used()) == 3 })
				c.wait(time.Minute)
				if len(a.used()) != 3 || !c.runs("db-0", "node-000") || !c.runs("db-1", "node-000") {
					t.Errorf("%d pods of the pool have an address", len(a.used()))
				}
			})
		})
	}
}

// Where an ENI has addresses of its own subnet alone, places are kept as whole ENIs that are left to be made.
func TestAnENIIsLeftToBeMadeForATopology(t *testing.T) {
	own := topologyOf("own", "Elastic", "", "b", "", "")
	playOwnSubnet(t, setup{typ: sim.Type{Name: "two", ENIs: 2, V4: 4, V6: 4}, conf: pool.Config{TopologyPlaces: 1}}, own, func(ctx context.Context, w *world, c *claimStore) {
		a := w.agents[0]
		a.set(6)
		w.until(2*time.Minute, func() bool { return len(a.used()) == 3 })
		c.wait(2 * time.Minute)
		if n := w.store.node("node-000").Status; len(n.ENIs) != 1 {
			t.Fatalf("the pool has %d ENIs", len(n.ENIs))
		}
		c.run("db-0", "node-000", "own")
		c.awaitPod(2*time.Minute, "db-0", "node-000")
	})
}

// A leader ends while an idle address leaves: the next one goes on.
func TestALeaderEndsWhileAPlaceChangesHands(t *testing.T) {
	for after := range 12 {
		playClaims(t, setup{typ: tiny}, func(ctx context.Context, w *world, c *claimStore) {
			a := w.agents[0]
			a.set(3)
			w.until(2*time.Minute, func() bool { return len(a.addresses()) == 5 && w.isQuiet() })
			c.run("x-0", "node-000", "elastic")
			c.wait(time.Duration(after) * 400 * time.Millisecond)
			w.leading().kill()
			c.wait(lease.Duration)
			w.leadWith(ctx, func(*operator.Options) {})
			c.awaitPod(4*time.Minute, "x-0", "node-000")
			c.wait(3 * time.Minute)
			if len(a.used()) != 3 || c.general(a) != 4 {
				t.Errorf("after %d: the pool has %d addresses, and pods have %d of them", after, c.general(a), len(a.used()))
			}
		})
	}
}
