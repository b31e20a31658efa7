package operator_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
)

// warmTopology is one that keeps addresses ready.
func warmTopology(warm int32) *crd.PodSubnetTopology {
	t := topologyOf("warm", "Elastic", "", "a", "", "")
	t.Spec.Warm = warm
	return t
}

// ready returns what is ready on a node, and there.
func (c *claimStore) ready(node string) (list []netip.Addr) {
	on := c.w.places()
	for _, r := range c.w.store.node(node).Status.Reserved {
		if at, err := netip.ParseAddr(r.Address); err == nil && r.Pod == "" && r.Topology == "warm" && on[at] == node {
			list = append(list, at)
		}
	}
	return list
}

// show has the kubelet show the address that a pod has.
func (s *claimStore) show(name string) {
	at, _ := s.addressOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[claims.Name{Namespace: "db", Name: name}]
	p.V4 = at
	s.pods[p.Name] = p
	s.tell(claims.Event{Pod: &p})
}

// A node with pods of a topology keeps addresses ready for its next ones, which ask the cloud for nothing. An hour after the last one they go.
func TestAddressesAreReadyForTheNextPodsOfATopology(t *testing.T) {
	playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
		c.setTopology(warmTopology(2))
		c.run("x-0", "node-000", "warm")
		c.awaitPod(3*time.Minute, "x-0", "node-000")
		w.until(time.Minute, func() bool { return len(c.ready("node-000")) == 2 })
		c.wait(time.Minute)
		if len(c.ready("node-000")) != 2 || len(c.ready("node-001")) != 0 {
			t.Fatalf("ready are %v and %v", c.ready("node-000"), c.ready("node-001"))
		}
		first := c.ready("node-000")[0]
		c.run("x-1", "node-000", "warm")
		if took := c.awaitPod(time.Minute, "x-1", "node-000"); took > 3*time.Second {
			t.Errorf("it waits for %s beside what is ready", took)
		}
		if at, _ := c.addressOf("x-1"); at != first {
			t.Errorf("it has %s, and %s was ready", at, first)
		}
		w.until(time.Minute, func() bool { return len(c.ready("node-000")) == 2 })

		w.leading().kill()
		w.leadWith(ctx, nil)
		c.wait(2 * time.Minute)
		if len(c.ready("node-000")) != 2 {
			t.Errorf("with the next leader %v", c.ready("node-000"))
		}
		c.setTopology(warmTopology(1))
		w.until(time.Minute, func() bool { return len(c.ready("node-000")) == 1 })
		c.stop("x-0")
		c.stop("x-1")
		c.wait(50 * time.Minute)
		if len(c.ready("node-000")) != 1 {
			t.Errorf("without pods %v", c.ready("node-000"))
		}
		w.until(20*time.Minute, func() bool { return len(w.store.node("node-000").Status.Reserved) == 0 })
		w.until(time.Minute, w.isQuiet)
	})
}

// An agent gives what is ready to the pods that it sees, and they may be others than the operator thought: what pods show counts.
func TestAPodKeepsTheReadyAddressThatItsNodeGaveIt(t *testing.T) {
	playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
		c.setTopology(warmTopology(2))
		c.run("x-0", "node-000", "warm")
		c.awaitPod(3*time.Minute, "x-0", "node-000")
		w.until(time.Minute, func() bool { return len(c.ready("node-000")) == 2 })
		ready := c.ready("node-000")
		a := w.agents[0]
		a.mu.Lock()
		a.silent = true
		a.mu.Unlock()
		c.run("x-1", "node-000", "warm") // the operator names the first one for it
		c.wait(2 * time.Second)
		c.mu.Lock()
		p := c.pods[claims.Name{Namespace: "db", Name: "x-1"}]
		c.mu.Unlock()
		a.mu.Lock()
		a.state.Reserve(order.Reservations([]order.Reserved{{Addr: ready[1], Topology: "warm", Namespace: "db", Pod: "x-1", UID: p.UID}}), w.since())
		a.boxes[ready[1]], a.silent = p.UID, false
		a.mu.Unlock()
		c.show("x-1")
		c.wait(10 * time.Second)
		if at, _ := c.addressOf("x-1"); at != ready[1] {
			t.Fatalf("it has %s", at)
		}
		for _, r := range w.store.node("node-000").Status.Reserved {
			if r.Pod == "x-1" && r.Address != ready[1].String() || r.Address == ready[1].String() && r.UID != p.UID {
				t.Errorf("kept: %+v", r)
			}
		}
		c.run("x-2", "node-000", "warm")
		c.awaitPod(time.Minute, "x-2", "node-000")
		if at, _ := c.addressOf("x-2"); at != ready[0] {
			t.Errorf("it has %s, and %s is ready", at, ready[0])
		}
	})
}

// What is ready takes no place that a pod needs.
func TestWhatIsReadyTakesNoPlaceFromPods(t *testing.T) {
	playClaims(t, setup{typ: tiny}, func(ctx context.Context, w *world, c *claimStore) {
		c.setTopology(warmTopology(4))
		w.agents[0].set(2)
		w.until(2*time.Minute, func() bool { return len(w.agents[0].addresses()) == 4 && w.isQuiet() })
		c.run("x-0", "node-000", "warm")
		c.awaitPod(3*time.Minute, "x-0", "node-000")
		c.wait(5 * time.Minute)
		if len(c.ready("node-000")) != 0 || len(w.agents[0].used()) != 2 {
			t.Errorf("ready are %v, and %d pods of the pool have an address", c.ready("node-000"), len(w.agents[0].used()))
		}
	})
}
