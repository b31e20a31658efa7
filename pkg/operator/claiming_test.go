package operator_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// theSet is the StatefulSet of all pods here.
var theSet = claims.Name{Namespace: "db", Name: "db"}

// playClaims runs a world of nodes with a topology of each strategy, in ranges that are reserved in the cloud.
func playClaims(t *testing.T, s setup, run func(ctx context.Context, w *world, c *claimStore)) {
	t.Helper()
	if s.nodes == 0 {
		s.nodes = 2
	}
	play(t, s, func(ctx context.Context, w *world) {
		c := w.withTopologies(topologyOf("fixed", "Fixed", "", "a", "10.0.200.0", "10.0.200.7"), topologyOf("sticky", "Sticky", "5m", "a", "10.0.201.0", "10.0.201.7"),
			topologyOf("elastic", "Elastic", "", "a", "", ""))
		c.setSets(theSet)
		w.store.subnets["a"] = &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Generation: 1, ResourceVersion: "1"},
			Spec: crd.SubnetSpec{Use: "Shared", Reserve: []string{"10.0.200.0/29", "10.0.201.0/29"}}}
		w.store.version = 1
		for _, a := range w.agents {
			a.pods = 2
		}
		w.begin(ctx)
		w.leadWith(ctx, nil)
		run(ctx, w, c)
		c.checkBoxes()
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, bad := range append(w.wrong, w.store.wrong...) {
			if i < 5 {
				w.Error(bad)
			}
		}
	})
}

// awaitPod waits until a pod runs on a node with an address.
func (c *claimStore) awaitPod(most time.Duration, name, node string) time.Duration {
	c.w.Helper()
	return c.w.until(most, func() bool { c.checkBoxes(); return c.runs(name, node) })
}

// awaitBound does that, and waits until the claim says so too: it is written after the pod has begun, and what comes next goes by it.
func (c *claimStore) awaitBound(most time.Duration, name, node string) time.Duration {
	c.w.Helper()
	took := c.awaitPod(most, name, node)
	c.w.until(time.Minute, func() bool { is := c.claim(name).Status; return is.Phase == "Bound" && is.Node == node })
	return took
}

func TestAPodOfAStatefulSetKeepsItsAddress(t *testing.T) {
	playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
		c.run("db-0", "node-000", "fixed")
		c.awaitBound(3*time.Minute, "db-0", "node-000")
		at, _ := c.addressOf("db-0")
		if !strings.HasPrefix(at.String(), "10.0.200.") || c.claim("db-0").Status.Phase != "Bound" {
			t.Errorf("%s: %+v", at, c.claim("db-0"))
		}
		c.run("db-0", "node-000", "fixed")
		t.Logf("again on its node after %s", c.awaitBound(10*time.Second, "db-0", "node-000"))
		c.run("db-0", "node-001", "fixed")
		t.Logf("on another one after %s", c.awaitBound(time.Minute, "db-0", "node-001"))
		if again, _ := c.addressOf("db-0"); again != at || c.claim("db-0").Status.Moves != 1 {
			t.Errorf("%s, and before %s: %+v", again, at, c.claim("db-0").Status)
		}
		if count, known := w.lead.CountOf("fixed"); !known || count != (topology.Count{Pods: 1, Claims: 1, Room: 7}) {
			t.Errorf("counted: %+v", count)
		}
		c.stop("db-0")
		c.wait(time.Hour)
		if is := c.claim("db-0"); is == nil || is.Status.Phase != "Free" || w.places()[at] != "node-001" {
			t.Errorf("without its pod: %+v", is)
		}
		c.setSets()
		w.until(3*time.Minute, func() bool { return c.claim("db-0") == nil })
		if on := w.places()[at]; on != "" {
			t.Errorf("the claim has ended, and %s is on %s", at, on)
		}
	})
}

func TestAnAddressIsTakenFromANodeThatSaysNothing(t *testing.T) {
	for name, test := range map[string]struct {
		cut  bool
		most time.Duration
	}{"its agent is silent": {false, 25 * time.Second}, "the cluster does not reach it": {true, 8 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				c.run("db-0", "node-000", "fixed")
				c.awaitPod(3*time.Minute, "db-0", "node-000")
				c.wait(time.Minute)
				a := w.agents[0]
				a.mu.Lock()
				a.silent = true
				a.mu.Unlock()
				if test.cut {
					w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = true })
				}
				c.run("db-0", "node-001", "fixed")
				t.Logf("after %s", c.awaitPod(test.most, "db-0", "node-001"))
				a.mu.Lock()
				a.silent = false
				a.mu.Unlock()
				w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = false })
				c.wait(time.Minute)
				if list := w.store.node("node-000").Status; len(list.Reserved)+len(list.Releasing) > 0 || !c.runs("db-0", "node-001") {
					t.Errorf("when it is back: %+v, %+v", list.Reserved, list.Releasing)
				}
			})
		})
	}
}

func TestAStickyAddressEndsAfterItsTime(t *testing.T) {
	playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
		c.run("web-0", "node-000", "sticky")
		c.awaitPod(3*time.Minute, "web-0", "node-000")
		at, _ := c.addressOf("web-0")
		c.stop("web-0")
		c.wait(4 * time.Minute)
		c.run("web-0", "node-001", "sticky")
		c.awaitPod(time.Minute, "web-0", "node-001")
		if again, _ := c.addressOf("web-0"); again != at {
			t.Errorf("%s, and before %s", again, at)
		}
		c.stop("web-0")
		c.wait(4 * time.Minute)
		if c.claim("web-0") == nil {
			t.Error("it ends too early")
		}
		w.until(2*time.Minute, func() bool { return c.claim("web-0") == nil })
		if on := w.places()[at]; on != "" {
			t.Errorf("%s is on %s", at, on)
		}
	})
}

func TestAnElasticAddressGoesWithItsPod(t *testing.T) {
	playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
		c.run("x-0", "node-000", "elastic")
		c.awaitPod(3*time.Minute, "x-0", "node-000")
		at, _ := c.addressOf("x-0")
		if c.claim("x-0") != nil {
			t.Error("it has a claim")
		}
		w.leading().kill()
		w.leadWith(ctx, nil)
		c.wait(time.Minute)
		if again, node := c.addressOf("x-0"); again != at || node != "node-000" {
			t.Errorf("with the next leader %s on %s, before %s", again, node, at)
		}
		c.stop("x-0")
		w.until(time.Minute, func() bool { return w.places()[at] == "" })
	})
}

// A leader may end wherever it writes: the next one goes on.
func TestALeaderEndsInTheMiddleOfAMove(t *testing.T) {
	for _, where := range []string{"create", "write Moving", "write Bound", "write Free"} {
		t.Run(where, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				killed := 0
				c.passes = func(what string) {
					if what == where && killed < 3 {
						killed++
						w.leading().cancel()
					}
				}
				again := func() {
					if l := w.leading(); isEnded(l) {
						time.Sleep(lease.Duration)
						w.leadWith(ctx, nil)
					}
				}
				for i, node := range []string{"node-000", "node-001", "node-000"} {
					c.run("db-0", node, "fixed")
					w.until(10*time.Minute, func() bool { again(); c.checkBoxes(); return c.runs("db-0", node) })
					if i == 1 {
						c.stop("db-0")
						w.until(10*time.Minute, func() bool { again(); return c.claim("db-0").Status.Phase == "Free" })
					}
				}
				if killed == 0 {
					t.Error("no leader has ended")
				}
			})
		})
	}
}

func isEnded(l *leader) bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// Two pods of one name never are, but two of many names are, and all at once.
func TestManyPodsGetOneAddressEach(t *testing.T) {
	playClaims(t, setup{nodes: 3}, func(ctx context.Context, w *world, c *claimStore) {
		names := strings.Fields("db-0 db-1 db-2 db-3 db-4 db-5")
		c.wait(30 * time.Second)
		for round := range 3 {
			for i, name := range names {
				c.run(name, w.agents[(i+round)%3].name, "fixed")
			}
			w.until(2*time.Minute, func() bool {
				c.checkBoxes()
				return !slices.ContainsFunc(names, func(name string) bool {
					_, node := c.addressOf(name)
					return node == "" || !c.runs(name, node)
				})
			})
		}
	})
}

func TestWithoutTopologiesNothingOfThemIsRead(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		c := w.withTopologies(topologyOf("fixed", "Fixed", "", "a", "10.0.200.0", "10.0.200.7"))
		w.agents[0].pods = 2
		c.run("db-0", "node-000", "fixed")
		w.begin(ctx)
		w.leadWith(ctx, func(o *operator.Options) { o.Claims = nil })
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(time.Minute)
		if c.calls+c.written > 0 || len(w.store.node("node-000").Status.Reserved) > 0 {
			t.Errorf("%d watches, %d writes, %+v", c.calls, c.written, w.store.node("node-000").Status.Reserved)
		}
	})
}

// An Exclusive subnet is for pods of topologies alone: a node gets an ENI there when a pod needs one, and no other pod an address of it.
func TestAnENIIsMadeInTheSubnetOfATopology(t *testing.T) {
	subnets := []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16")}, {ID: "b", V4: mustPrefix("10.1.0.0/24")}}
	for _, killed := range []bool{false, true} {
		playClaims(t, setup{subnets: subnets, lieIn: []string{"a", "a"}}, func(ctx context.Context, w *world, c *claimStore) {
			w.store.mu.Lock()
			w.store.subnets["b"] = &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Generation: 1, ResourceVersion: "1"}, Spec: crd.SubnetSpec{Use: "Exclusive"}}
			w.store.tell("", operator.Event{Subnet: w.store.subnets["b"].DeepCopy()})
			w.store.mu.Unlock()
			c.mu.Lock()
			c.topologies["own"] = topologyOf("own", "Fixed", "", "b", "", "")
			c.tell(claims.Event{Topology: c.topologies["own"].DeepCopy()})
			c.mu.Unlock()
			c.run("db-0", "node-000", "own")
			if killed {
				made := func(context.Context) bool {
					made := false
					w.View(0, func(tx *sim.Tx) {
						for _, nic := range tx.Interfaces() {
							made = made || nic.Subnet == "b"
						}
					})
					return made
				}
				w.until(3*time.Minute, func() bool { return made(ctx) })
				w.leading().kill()
				w.leadWith(ctx, nil)
			}
			c.awaitPod(3*time.Minute, "db-0", "node-000")
			at, _ := c.addressOf("db-0")
			if !mustPrefix("10.1.0.0/24").Contains(at) {
				t.Errorf("it has %s", at)
			}
			w.agents[0].set(20) // more than one ENI has
			w.until(3*time.Minute, func() bool { return len(w.agents[0].used()) == 20 })
			for _, a := range w.agents[0].used() {
				if mustPrefix("10.1.0.0/24").Contains(a) {
					t.Errorf("%s is another pod's", a)
				}
			}
			c.run("db-0", "node-001", "own")
			c.awaitPod(2*time.Minute, "db-0", "node-001")
			if again, _ := c.addressOf("db-0"); again != at {
				t.Errorf("%s, and before %s", again, at)
			}
			for _, e := range w.store.node("node-000").Status.ENIs {
				if (e.Subnet == "b") != (e.Topology == "own") {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// Who can't get an address is told why.
func TestPeopleAreToldWhatAPodWaitsFor(t *testing.T) {
	playClaims(t, setup{typ: sim.Type{Name: "tiny", ENIs: 1, V4: 5, V6: 5}}, func(ctx context.Context, w *world, c *claimStore) {
		w.agents[0].set(4)
		w.until(time.Minute, func() bool { return len(w.agents[0].used()) == 4 })
		c.run("db-0", "node-000", "fixed")
		c.run("x-0", "node-001", "none")
		c.wait(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		said := strings.Join(c.heard, "\n")
		if !strings.Contains(said, "db/db-0 NoPlace: no ENI of node-000") || !strings.Contains(said, "db/x-0 TopologyNotReady: there is no topology none") || len(c.heard) > 6 {
			t.Errorf("people heard:\n%s", said)
		}
		before := strings.Count(said, "db/db-0 NoPlace")
		c.mu.Unlock()
		c.wait(operator.TellAgain)
		c.mu.Lock()
		if again := strings.Count(strings.Join(c.heard, "\n"), "db/db-0 NoPlace"); again != before+1 {
			t.Errorf("its event is dropped, and it was told %d times, then %d", before, again)
		}
	})
}

// An address that somebody else has is no reason for the pods without a topology to wait. Its own pod is told who has it.
func TestAnAddressThatOthersHaveKeepsNothingFromThePool(t *testing.T) {
	playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
		w.until(time.Minute, w.isQuiet)
		_, err := w.AddInstance(sim.Instance{ID: "i-other", Type: "small", Subnet: "a"})
		w.must(err)
		var other string
		w.View(0, func(tx *sim.Tx) {
			for _, nic := range tx.Interfaces() {
				if nic.Attachment != nil && nic.Attachment.Instance == "i-other" {
					other = nic.ID
				}
			}
		})
		w.must(w.Update(func(tx *sim.Tx) error {
			_, err := tx.Assign(other, sim.AddressRequest{V4: []netip.Addr{netip.MustParseAddr("10.0.200.0")}})
			return err
		}))
		c.run("db-0", "node-000", "fixed")
		w.until(time.Minute, func() bool { is := c.claim("db-0"); return is != nil && is.Status.Phase == "Conflict" })
		w.agents[0].set(6)
		if took := w.until(20*time.Second, func() bool { return len(w.agents[0].used()) == 6 }); took > 10*time.Second {
			t.Errorf("the others wait for %s", took)
		}
		c.mu.Lock()
		said := strings.Join(c.heard, "\n")
		c.mu.Unlock()
		if !strings.Contains(said, "db/db-0 Conflict: an unmanaged ENI has 10.0.200.0") {
			t.Errorf("people heard:\n%s", said)
		}
		c.endClaim("10.0.200.0")
		c.awaitPod(2*time.Minute, "db-0", "node-000")
		if at, _ := c.addressOf("db-0"); at.String() == "10.0.200.0" {
			t.Errorf("it has %s", at)
		}
	})
}
