package operator_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/topology"
)

// threads are what people have told of fixed addresses in other projects, each as what happens there and what happens here. That it does, the
// flow of each shows: while it runs nobody has an address that another one has, or that is not on his node.
var threads = []struct {
	name, there, here string
	setup             setup
	run               func(ctx context.Context, w *world, c *claimStore)
}{
	{
		name:  "spiderpool#3751",
		there: "three of six nodes are drained, the six pods of a StatefulSet run on the others, and some of them have the same address",
		here:  "each has the address that it had, and none is another one's",
		setup: setup{nodes: 6}, run: threadOfDrainedNodes,
	},
	{
		name:  "spiderpool#2526",
		there: "a pod restarts fast, what collects garbage finds another uid at its address and frees it, and a pod that waits gets it too",
		here:  "the address is its name's, whichever uid it has: the pod that waits goes on waiting",
		run:   threadOfFastRestarts,
	},
	{
		name:  "kube-ovn#4304",
		there: "a pod ends while the controller is down, and the address is given to another pod although the old port still has it",
		here:  "the next pod has it once the old node's ENI has not, whoever was down",
		setup: setup{nodes: 2}, run: threadOfAControllerThatWasDown,
	},
	{
		name:  "kube-ovn#3222",
		there: "a volume hangs, its pod is Terminating for long, the node is restarted in the end, and the pod comes back with another address",
		here:  "it comes back with its address: as long as the pod's object is there, and after it, the claim is",
		run:   threadOfAVolumeThatHangs,
	},
	{
		name:  "hybridnet#417",
		there: "a StatefulSet is given another address, and its pod keeps both reserved",
		here:  "who scales down, deletes the claim and scales up has one claim afterwards, of the new range, and one address",
		run: func(_ context.Context, w *world, c *claimStore) {
			old := changeAddress(w, c)
			w.until(time.Minute, func() bool { return w.places()[old] == "" })
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.claims) != 1 {
				w.Errorf("%d claims: %v", len(c.claims), c.claims)
			}
		},
	},
	{
		name:  "hybridnet#417, in a hurry",
		there: "a StatefulSet is given another address, and its pod keeps both reserved",
		here:  "who deletes the claim and the pod, and waits for nothing, has the next pod on the same node with an address of the new range, and one claim",
		run:   threadOfAClaimAndItsPod,
	},
	{
		name:  "kube-ovn#5259",
		there: "a StatefulSet is given another address, and a second one can't have the first: it conflicts for good. In the end changes are forbidden",
		here:  "the second one has it as soon as the first one's claim has ended",
		run: func(_ context.Context, w *world, c *claimStore) {
			old := changeAddress(w, c)
			c.setTopology(topologyOf("second", "Fixed", "", "a", old.String(), old.String()))
			c.run("other-0", "node-000", "second")
			c.awaitPod(3*time.Minute, "other-0", "node-000")
			if at, _ := c.addressOf("other-0"); at != old {
				w.Errorf("it has %s, and not %s", at, old)
			}
		},
	},
	{
		name:  "hybridnet#20",
		there: "the address that is kept ties the pod to where it ran first, though nothing is left there, and nobody can let go of it",
		here:  "people are told that the address lies in another zone; they delete the claim, and the pod has another one where it is",
		setup: setup{subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16"), Zone: "zone-a"}, {ID: "b", V4: mustPrefix("10.1.0.0/16"), Zone: "zone-b"}}, lieIn: []string{"a", "b"}},
		run:   threadOfAnotherZone,
	},
	{
		name:  "kubernetes#65943",
		there: "a node dies with the address of its pod, and the next pod waits for it without end",
		here:  "it is taken from the dead node at once, by another operator too, and the next pod has it",
		run:   threadOfADeadNode,
	},
}

func TestWhatPeopleMetElsewhereDoesNotHappenHere(t *testing.T) {
	for _, thread := range threads {
		t.Run(thread.name, func(t *testing.T) {
			playClaims(t, thread.setup, thread.run)
			if t.Failed() {
				t.Logf("there: %s\nhere: %s", thread.there, thread.here)
			}
		})
	}
}

// awaitAll waits until each pod has an address, and returns who has which.
func (s *claimStore) awaitAll(most time.Duration, names []string) map[string]netip.Addr {
	s.w.Helper()
	has := map[string]netip.Addr{}
	s.w.until(most, func() bool {
		s.checkBoxes()
		for _, name := range names {
			at, on := s.addressOf(name)
			if has[name] = at; on == "" || !s.runs(name, on) {
				return false
			}
		}
		return true
	})
	return has
}

func threadOfDrainedNodes(_ context.Context, w *world, c *claimStore) {
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprint("db-", i))
		c.run(names[i], w.agents[i].name, "fixed")
	}
	before := c.awaitAll(5*time.Minute, names)
	for i := range 3 { // an eviction waits for no other one
		c.run(names[i], w.agents[3+i].name, "fixed")
	}
	after, seen := c.awaitAll(2*time.Minute, names), map[netip.Addr]string{}
	for _, name := range names {
		if after[name] != before[name] || seen[after[name]] != "" {
			w.Errorf("%s has %s, before %s; %q has it too", name, after[name], before[name], seen[after[name]])
		}
		seen[after[name]] = name
	}
}

func threadOfFastRestarts(_ context.Context, w *world, c *claimStore) {
	var names []string
	for i := range 8 { // all that the range has
		names = append(names, fmt.Sprint("db-", i))
		c.run(names[i], w.agents[i%2].name, "fixed")
	}
	before := c.awaitAll(5*time.Minute, names)
	c.run("db-8", "node-000", "fixed")
	for i := range 12 {
		c.run("db-0", "node-000", "fixed")
		c.wait(time.Duration(i*i*50) * time.Millisecond)
	}
	after := c.awaitAll(time.Minute, names)
	if at, _ := c.addressOf("db-8"); after["db-0"] != before["db-0"] || at.IsValid() {
		w.Errorf("db-0 has %s, before %s; db-8 has %s", after["db-0"], before["db-0"], at)
	}
}

func threadOfAControllerThatWasDown(ctx context.Context, w *world, c *claimStore) {
	c.setTopology(topologyOf("one", "Fixed", "", "a", "10.0.201.7", "10.0.201.7"))
	c.run("old-0", "node-000", "one")
	c.awaitPod(3*time.Minute, "old-0", "node-000")
	old := w.agents[0]
	old.mu.Lock()
	old.silent = true // what is left of the pod goes on there
	old.mu.Unlock()
	w.leading().kill()
	c.stop("old-0")
	c.endClaim("10.0.201.7")
	c.run("new-0", "node-001", "one")
	c.wait(time.Minute)
	if on := w.places()[netip.MustParseAddr("10.0.201.7")]; on != "node-000" {
		w.Errorf("without an operator the address has gone to %q", on)
	}
	w.leadWith(ctx, nil)
	c.awaitPod(3*time.Minute, "new-0", "node-001")
	if at, _ := c.addressOf("new-0"); at.String() != "10.0.201.7" {
		w.Errorf("it has %s", at)
	}
	old.mu.Lock()
	old.silent = false
	old.mu.Unlock()
	c.wait(time.Minute)
}

func threadOfAVolumeThatHangs(ctx context.Context, w *world, c *claimStore) {
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(3*time.Minute, "db-0", "node-000")
	before, _ := c.addressOf("db-0")
	a := w.agents[0]
	a.mu.Lock()
	a.silent = true
	a.mu.Unlock()
	w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = true })
	for range 3 { // operators come and go meanwhile
		c.wait(20 * time.Minute)
		w.leading().kill()
		c.wait(lease.Duration)
		w.leadWith(ctx, nil)
	}
	a.restart(true)
	a.mu.Lock()
	a.boxes, a.silent = map[netip.Addr]string{}, false
	a.mu.Unlock()
	w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = false })
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(3*time.Minute, "db-0", "node-000")
	if again, _ := c.addressOf("db-0"); again != before {
		w.Errorf("it has %s, and before %s", again, before)
	}
}

// threadOfAClaimAndItsPod has the next pod there before the operator has done anything for the end of the claim.
func threadOfAClaimAndItsPod(_ context.Context, w *world, c *claimStore) {
	c.setTopology(topologyOf("fixed", "Fixed", "", "a", "10.0.200.0", "10.0.200.3"))
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(3*time.Minute, "db-0", "node-000")
	old, _ := c.addressOf("db-0")
	c.setTopology(topologyOf("fixed", "Fixed", "", "a", "10.0.200.4", "10.0.200.7"))
	c.wait(time.Minute)
	c.endClaim(old.String())
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(time.Minute, "db-0", "node-000")
	if at, _ := c.addressOf("db-0"); at.Less(netip.MustParseAddr("10.0.200.4")) {
		w.Errorf("the next pod has %s", at)
	}
	w.until(2*time.Minute, func() bool { return w.places()[old] == "" })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.claims) != 1 {
		w.Errorf("%d claims: %v", len(c.claims), c.claims)
	}
}

// changeAddress has a StatefulSet's pod get an address of another range, as people do it: they change the topology, scale down, delete the claim and
// scale up. It returns the address from before.
func changeAddress(w *world, c *claimStore) netip.Addr {
	c.setTopology(topologyOf("fixed", "Fixed", "", "a", "10.0.200.0", "10.0.200.3"))
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(3*time.Minute, "db-0", "node-000")
	old, _ := c.addressOf("db-0")
	c.setTopology(topologyOf("fixed", "Fixed", "", "a", "10.0.200.4", "10.0.200.7"))
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(time.Minute, "db-0", "node-000")
	if at, _ := c.addressOf("db-0"); at != old {
		w.Errorf("what the range is now counts for a claim from before: %s, and before %s", at, old)
	}
	c.endClaim(old.String())
	c.wait(time.Minute)
	if at, _ := c.addressOf("db-0"); at != old {
		w.Errorf("the pod loses its address while it runs: it has %s", at)
	}
	c.stop("db-0")
	w.until(time.Minute, func() bool { return c.claim("db-0") == nil })
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(2*time.Minute, "db-0", "node-000")
	if at, _ := c.addressOf("db-0"); at.Less(netip.MustParseAddr("10.0.200.4")) {
		w.Errorf("it has %s", at)
	}
	return old
}

func threadOfAnotherZone(_ context.Context, w *world, c *claimStore) {
	two := topologyOf("two", "Fixed", "", "a", "10.0.202.0", "10.0.202.3")
	two.Spec.Subnets = append(two.Spec.Subnets, topologyOf("", "", "", "b", "10.1.0.16", "10.1.0.19").Spec.Subnets...)
	c.setTopology(two)
	w.store.changeNode("node-001", func(n *operator.Node) { n.Zone = "zone-b" })
	c.run("db-0", "node-000", "two")
	c.awaitPod(10*time.Minute, "db-0", "node-000") // its ranges are reserved in the cloud first
	old, _ := c.addressOf("db-0")
	c.run("db-0", "node-001", "two")
	c.wait(5 * time.Minute)
	c.mu.Lock()
	said := strings.Join(c.heard, "\n")
	c.mu.Unlock()
	if at, _ := c.addressOf("db-0"); at.IsValid() || !strings.Contains(said, string(topology.OtherZone)) {
		w.Errorf("it has %s, and people heard:\n%s", at, said)
	}
	c.endClaim(old.String())
	c.awaitPod(3*time.Minute, "db-0", "node-001")
	if at, _ := c.addressOf("db-0"); !mustPrefix("10.1.0.16/30").Contains(at) {
		w.Errorf("it has %s", at)
	}
}

func threadOfADeadNode(ctx context.Context, w *world, c *claimStore) {
	c.run("db-0", "node-000", "fixed")
	c.awaitPod(3*time.Minute, "db-0", "node-000")
	before, _ := c.addressOf("db-0")
	a := w.agents[0]
	a.mu.Lock()
	a.silent = true
	a.mu.Unlock()
	w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = true })
	c.wait(5 * time.Minute)
	c.run("db-0", "node-001", "fixed") // its word that the old pod is gone has who deletes it by force, or taints the node
	c.awaitPod(10*time.Second, "db-0", "node-001")
	w.leading().kill()
	c.wait(lease.Duration)
	w.leadWith(ctx, nil)
	w.store.changeNode("node-001", func(n *operator.Node) { n.Cut = true })
	c.run("db-0", "node-000", "fixed")
	w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = false })
	a.mu.Lock()
	a.silent = false
	a.mu.Unlock()
	c.awaitPod(time.Minute, "db-0", "node-000")
	if again, _ := c.addressOf("db-0"); again != before {
		w.Errorf("it has %s, and before %s", again, before)
	}
}
