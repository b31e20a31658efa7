package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// scarceWorld is five nodes with 23 idle addresses each and one without any, in a
// subnet that has none left. Nobody refused the five anything.
func scarceWorld(t *testing.T) (w *world, idle []*testNode, poor *testNode) {
	w = newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"))
	idle = w.idleNodes(5, large)
	poor = w.addNode(testConfig("poor"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
		t.Fatal(err)
	}
	inCluster(poor)
	poor.start(-1, false)
	poor.crowd(15)
	for _, n := range idle {
		if n.total() != 32 {
			t.Fatalf("%s has %d addresses for 9 pods, want 32", n.name, n.total())
		}
	}
	return w, idle, poor
}

// idleNodes are nodes in subnet-a with more addresses than the nine pods of each need.
func (w *world) idleNodes(number int, l eni.Limits) (idle []*testNode) {
	for i := range number {
		n := w.addNode(testConfig(fmt.Sprintf("n%d", i)), sim.NodeSpec{Limits: l, Subnet: "subnet-a"})
		inCluster(n)
		n.start(-1, false)
		idle = append(idle, n)
	}
	sleep(30 * time.Second)
	for _, n := range idle {
		n.crowd(9)
	}
	sleep(10 * time.Minute)
	return idle
}

// untilServed returns how long it takes until no pod of the node waits, or an hour if some do still.
func (n *testNode) untilServed() (waited time.Duration) {
	for ; n.retry() > 0 && waited < time.Hour; waited += time.Second {
		sleep(time.Second)
	}
	return waited
}

// For an hour, and whoever the nodes are: a subnet's addresses go to the pods that need them.
func TestNodesThatLackNothingReleaseSpareAddressesForPodsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, idle, poor := scarceWorld(t)
		for _, n := range w.nodes {
			defer n.stop()
		}
		if waited := poor.untilServed(); waited > 4*time.Minute {
			t.Errorf("%d pods of a node without addresses waited %s", poor.retry(), waited)
		}
		for _, n := range idle {
			if left := n.retry(); left > 0 || n.total() < 10 {
				t.Errorf("%s has %d addresses for 9 pods, %d of which wait", n.name, n.total(), left)
			}
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// A subnet with room is no help to nodes that may have no more ENIs: what they can spare of the one that they are
// in goes to others there as if there were no other.
func TestASubnetThatANodeCantReachIsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"), subnet("subnet-b", "10.0.8.0/22"))
		node := func(name string) *testNode {
			n := w.addNode(testConfig(name), sim.NodeSpec{Limits: eni.Limits{ENIs: 1, V4: 50}, Subnet: "subnet-a"})
			inCluster(n)
			return n
		}
		for i := range 3 {
			node(fmt.Sprintf("n%d", i)).start(-1, false)
		}
		sleep(30 * time.Second)
		for _, n := range w.nodes {
			n.crowd(9)
		}
		sleep(10 * time.Minute)
		poor := node("poor")
		if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
			t.Fatal(err)
		}
		poor.start(-1, false)
		poor.crowd(15)
		for _, n := range w.nodes {
			defer n.stop()
		}
		if waited := poor.untilServed(); waited > 6*time.Minute {
			t.Errorf("%d pods waited %s beside nodes with addresses to spare", poor.retry(), waited)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// Who releases for others does not take the addresses back as soon as there are some:
// the nodes would swing together for ever.
func TestNodesOfAFullSubnetComeToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, poor := scarceWorld(t)
		for _, n := range w.nodes {
			defer n.stop()
		}
		for range 3600 {
			sleep(time.Second)
			poor.retry()
		}
		before := w.calls()
		sleep(2 * time.Hour)
		calls := w.calls()
		moved := calls["AssignAddresses"] + calls["UnassignAddresses"] + calls["CreateInterface"] - before["AssignAddresses"] - before["UnassignAddresses"] - before["CreateInterface"]
		if moved > 2*6*4 {
			t.Errorf("%d calls moved addresses in two quiet hours of six nodes", moved)
		}
	})
}

// A node that lacks nothing releases step by step, and keeps what its pods need.
func TestSpareAddressesForOthersGoStepByStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, inCluster)
		defer n.stop()
		n.crowd(9)
		sleep(10 * time.Minute)
		take := func() {
			if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
				t.Fatal(err)
			}
		}
		var sizes []int
		for range 3600 {
			take()
			if now := n.total(); len(sizes) == 0 || sizes[len(sizes)-1] != now {
				sizes = append(sizes, now)
			}
			sleep(time.Second)
		}
		if fmt.Sprint(sizes) != "[32 30 26 18 10]" {
			t.Errorf("addresses for 9 pods while others take all: %v", sizes)
		}
	})
}

// What may stay above the watermark may not where others need it.
func TestNothingStaysAboveTheWatermarkWhereOthersNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) {
			inCluster(n)
			n.conf.Pool.Mode, n.conf.Pool.PreAllocate, n.conf.Pool.MaxAboveWatermark = pool.BestEffort, 8, 16
		})
		defer n.stop()
		n.crowd(9)
		sleep(10 * time.Minute)
		for range 1800 {
			if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
				t.Fatal(err)
			}
			sleep(time.Second)
		}
		if got := n.total(); got != 10 {
			t.Errorf("%d addresses for 9 pods while others take all", got)
		}
	})
}
