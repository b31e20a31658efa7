package operator_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onENIOf is where the cloud has an address.
type onENIOf struct{ eni, node string }

// enisOf returns where each secondary address is, those of prefixes among them.
func (w *world) enisOf() map[netip.Addr]onENIOf {
	on := map[netip.Addr]onENIOf{}
	w.View(0, func(tx *sim.Tx) {
		for _, nic := range tx.Interfaces() {
			if nic.Attachment == nil {
				continue
			}
			at := onENIOf{nic.ID, nic.Attachment.Instance[len("i-"):]}
			for _, a := range nic.V4 {
				on[a] = at
			}
			for _, a := range nic.V6 {
				on[a] = at
			}
			for _, a := range order.Addresses(eni.Limits{V6Block: eni.Block{Size: 256}}, nic.Prefixes...) {
				on[a] = at
			}
		}
	})
	return on
}

// keptFor returns what a node's status keeps for a pod.
func (c *claimStore) keptFor(node, pod string) (list []netip.Addr) {
	n := c.w.store.node(node)
	if n == nil {
		return nil
	}
	for _, r := range n.Status.Reserved {
		if at, err := netip.ParseAddr(r.Address); err == nil && r.Pod == pod {
			list = append(list, at)
		}
	}
	return list
}

// On a node whose addresses come in prefixes those of topologies come one by one, beside them. Each takes the place of a prefix.
func TestTopologiesOnANodeWithPrefixes(t *testing.T) {
	for _, full := range []bool{false, true} {
		typ := sim.Type{Name: "prefixed", ENIs: 1, V4: 4, V6: 4} // three places
		playClaims(t, setup{prefixes: true, typ: typ}, func(ctx context.Context, w *world, c *claimStore) {
			a, pods := w.agents[0], 20
			a.mu.Lock()
			a.spare = 12 // whole prefixes, so that nothing goes back
			a.mu.Unlock()
			if full {
				pods = 33
			}
			a.set(pods)
			w.until(2*time.Minute, func() bool { return len(a.used()) == pods })
			c.wait(time.Minute)
			c.run("db-0", "node-000", "fixed")
			if full { // no prefix is idle as a whole
				c.wait(2 * time.Minute)
				c.mu.Lock()
				said := strings.Join(c.heard, "\n")
				c.mu.Unlock()
				if !strings.Contains(said, "db/db-0 NoPlace: no ENI of node-000 can carry") {
					t.Errorf("people heard:\n%s", said)
				}
				return
			}
			c.awaitPod(2*time.Minute, "db-0", "node-000")
			at, _ := c.addressOf("db-0")
			a.set(30)
			w.until(2*time.Minute, func() bool { return len(a.used()) == 30 })
			a.set(33)
			c.wait(2 * time.Minute)
			if !c.runs("db-0", "node-000") || len(a.used()) != 32 {
				t.Errorf("%d pods of the pool have an address, and db-0 its own %v", len(a.used()), c.runs("db-0", "node-000"))
			}
			c.run("db-0", "node-001", "fixed")
			c.awaitPod(2*time.Minute, "db-0", "node-001")
			if again, _ := c.addressOf("db-0"); again != at {
				t.Errorf("%s, and before %s", again, at)
			}
			w.until(3*time.Minute, func() bool { return len(a.used()) == 33 }) // in the place that it had
			c.stop("db-0")
			c.setSets()
			w.until(5*time.Minute, func() bool { return w.places()[at] == "" })
			w.must(w.Check())
		})
	}
}

// Pods with addresses of two families get both on one ENI, in whichever order they come, on a node of which one ENI has room for one of them alone.
func TestBothAddressesOfAPodAreOnOneENI(t *testing.T) {
	for _, single := range []bool{true, false} {
		t.Run(fmt.Sprint(single), func(t *testing.T) { bothOnOneENI(t, single) })
	}
}

// bothOnOneENI has addresses of IPv6 come one by one, or in prefixes.
func bothOnOneENI(t *testing.T, single bool) {
	subnets := []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16"), V6: mustPrefix("2001:db8:0:a::/64")}, {ID: "b", V4: mustPrefix("10.1.0.0/24"), V6: mustPrefix("2001:db8:0:b::/64")}}
	s := setup{subnets: subnets, lieIn: []string{"a", "a"}, families: []eni.Family{eni.IPv4, eni.IPv6}, typ: sim.Type{Name: "dual", ENIs: 6, V4: 4, V6: 5, NoPrefix: single}, conf: pool.Config{FirstENI: 1}}
	playClaims(t, s, func(ctx context.Context, w *world, c *claimStore) {
		w.store.mu.Lock()
		w.store.subnets["b"] = &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Generation: 1, ResourceVersion: "1"}, Spec: crd.SubnetSpec{Use: "Exclusive"}}
		w.store.tell("", operator.Event{Subnet: w.store.subnets["b"].DeepCopy()})
		w.store.mu.Unlock()
		for _, of := range []string{"Fixed", "Elastic"} {
			c.setTopology(topologyOf("own-"+strings.ToLower(of), of, "", "b", "", ""))
		}
		check := func(pod, node string) bool {
			kept, on := c.keptFor(node, pod), w.enisOf()
			return len(kept) == 2 && kept[0].Is4() != kept[1].Is4() && on[kept[0]].node == node && on[kept[0]] == on[kept[1]]
		}
		pods := strings.Fields("db-0 x-0 db-1 x-1")
		of := func(pod string) string { return map[byte]string{'d': "own-fixed", 'x': "own-elastic"}[pod[0]] }
		for _, pod := range pods {
			c.run(pod, "node-000", of(pod))
		}
		defer func() { w.Log(strings.Join(c.heard, "\n")) }()
		for _, pod := range pods {
			w.until(4*time.Minute, func() bool { return check(pod, "node-000") })
		}
		for _, pod := range pods {
			c.run(pod, "node-001", of(pod))
		}
		for _, pod := range pods {
			w.until(6*time.Minute, func() bool { return check(pod, "node-001") })
		}
		for _, pod := range pods {
			c.stop(pod)
		}
		c.setSets()
		w.until(20*time.Minute, func() bool {
			left := 0
			for at := range w.places() {
				if mustPrefix("10.1.0.0/24").Contains(at) {
					left++
				}
			}
			return left == 0 && len(w.store.node("node-000").Status.Reserved)+len(w.store.node("node-001").Status.Reserved) == 0
		})
	})
}

// A topology of which no subnet has both families can't serve a pod that needs both: that is told, and no address is taken for it.
func TestATopologyOfOneFamilyServesNoPodOfTwo(t *testing.T) {
	subnets := []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16"), V6: mustPrefix("2001:db8:0:a::/64")}, {ID: "b", V4: mustPrefix("10.1.0.0/24")}}
	s := setup{subnets: subnets, lieIn: []string{"a", "a"}, families: []eni.Family{eni.IPv4, eni.IPv6}, typ: sim.Type{Name: "dual", ENIs: 6, V4: 4, V6: 5, NoPrefix: true}}
	playClaims(t, s, func(ctx context.Context, w *world, c *claimStore) {
		c.run("db-0", "node-000", "fixed") // of a range of IPv4
		c.wait(2 * time.Minute)
		c.mu.Lock()
		said := strings.Join(c.heard, "\n")
		c.mu.Unlock()
		if !strings.Contains(said, "db/db-0 NoSubnet: ") || c.claim("db-0") != nil {
			t.Errorf("people heard:\n%s", said)
		}
	})
}
