package operator_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// emptyFor is how long an ENI of a topology carries nothing before the agent lets it go, as the real one has it.
const emptyFor = 10 * time.Minute

// leavingENIs returns the ENIs that go: those of topologies when they have been empty for long.
func (a *agent) leavingENIs(v order.View) []string {
	ids := slices.DeleteFunc(a.unused(), func(id string) bool {
		return slices.ContainsFunc(v.Status.ENIs, func(e order.ENI) bool { return e.ID == id && e.Topology != "" })
	})
	return append(ids, a.emptyENIs(v)...)
}

// emptyENIs returns the ENIs of topologies that have been empty for so long.
func (a *agent) emptyENIs(v order.View) (ids []string) {
	empty := map[string]time.Duration{}
	for _, e := range v.Status.ENIs {
		lies := func(r order.Reserved) bool { return e.V4.Primary.Masked().Contains(r.Addr) }
		has := slices.ContainsFunc(a.state.Addresses, func(line eni.Address) bool { return line.ENI == e.Index })
		if e.Topology == "" || len(e.Addresses) > 0 || has || slices.ContainsFunc(v.Status.Reserved, lies) {
			continue
		}
		if empty[e.ID] = a.w.since(); a.empty[e.ID] > 0 {
			empty[e.ID] = a.empty[e.ID]
		}
		if a.w.since()-empty[e.ID] >= emptyFor {
			ids = append(ids, e.ID)
		}
	}
	a.empty = empty
	return ids
}

// playOwnSubnet runs a world whose subnet b is for pods of the topology own alone.
func playOwnSubnet(t *testing.T, s setup, own *crd.PodSubnetTopology, run func(ctx context.Context, w *world, c *claimStore)) {
	t.Helper()
	s.subnets, s.lieIn = []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16")}, {ID: "b", V4: mustPrefix("10.1.0.0/24")}}, []string{"a", "a"}
	playClaims(t, s, func(ctx context.Context, w *world, c *claimStore) {
		w.store.mu.Lock()
		w.store.subnets["b"] = &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Generation: 1, ResourceVersion: "1"}, Spec: crd.SubnetSpec{Use: "Exclusive"}}
		w.store.tell("", operator.Event{Subnet: w.store.subnets["b"].DeepCopy()})
		w.store.mu.Unlock()
		c.setTopology(own)
		run(ctx, w, c)
	})
}

// setTopology makes or changes a topology.
func (s *claimStore) setTopology(t *crd.PodSubnetTopology) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topologies[t.Name] = t
	s.tell(claims.Event{Topology: t.DeepCopy()})
}

// in returns how many ENIs there are in a subnet.
func (w *world) in(subnet string) (n int) {
	w.View(0, func(tx *sim.Tx) {
		for _, nic := range tx.Interfaces() {
			if nic.Subnet == subnet {
				n++
			}
		}
	})
	return n
}

// An ENI that was made for a topology goes when it has carried nothing for long, and not while a claim has an address on it.
func TestAnENIOfATopologyThatIsEmptyGoes(t *testing.T) {
	for _, strategy := range []string{"Elastic", "Fixed"} {
		t.Run(strategy, func(t *testing.T) {
			playOwnSubnet(t, setup{}, topologyOf("own", strategy, "", "b", "", ""), func(ctx context.Context, w *world, c *claimStore) {
				c.run("db-0", "node-000", "own")
				c.awaitPod(3*time.Minute, "db-0", "node-000")
				c.stop("db-0")
				if strategy == "Fixed" {
					c.wait(2 * emptyFor)
					if w.in("b") != 1 {
						t.Fatal("the ENI that has the address of a claim is gone")
					}
					c.setSets()
				}
				c.wait(emptyFor - time.Minute)
				if w.in("b") != 1 {
					t.Fatal("the ENI goes too early")
				}
				w.until(5*time.Minute, func() bool { return w.in("b") == 0 })
				c.setSets(theSet)
				c.run("db-1", "node-000", "own")
				c.awaitPod(3*time.Minute, "db-1", "node-000")
			})
		})
	}
}

// A pod comes at the very moment at which the ENI goes: it gets its address, on that ENI or on another.
func TestAPodComesWhileAnEmptyENIGoes(t *testing.T) {
	playOwnSubnet(t, setup{}, topologyOf("own", "Elastic", "", "b", "", ""), func(ctx context.Context, w *world, c *claimStore) {
		c.run("db-0", "node-000", "own")
		c.awaitPod(3*time.Minute, "db-0", "node-000")
		var left []netip.Addr
		for round := range 24 {
			c.stop("db-0")
			w.until(time.Minute, func() bool {
				left = nil
				for at := range w.places() {
					if mustPrefix("10.1.0.0/24").Contains(at) {
						left = append(left, at)
					}
				}
				return len(left) == 0
			})
			c.wait(emptyFor - 3*time.Second + time.Duration(round)*300*time.Millisecond)
			c.run("db-0", "node-000", "own")
			c.awaitPod(3*time.Minute, "db-0", "node-000")
		}
	})
}
