package operator_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// crossing is a cloud like Baidu's that carries addresses across subnets.
func crossing(s setup) setup {
	s.likeBCE, s.cross = true, true
	return s
}

// inSubnet returns how many ENIs there are in a subnet.
func (w *world) inSubnet(id string) (n int) {
	for _, a := range w.agents {
		for _, e := range w.store.node(a.name).Status.ENIs {
			if e.Subnet == id {
				n++
			}
		}
	}
	return n
}

// Each ENI lies in subnet a, and the topologies have b for themselves.
func TestAPodNeedsNoENIInTheSubnetOfItsTopology(t *testing.T) {
	playMoves(t, crossing(setup{}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
		c.run("x-0", "node-000", "elastic")
		var at netip.Addr
		for i, node := range []string{"node-000", "node-001", "node-002", "node-000"} {
			c.run("db-0", node, "fixed")
			t.Logf("on %s after %s", node, c.awaitPod(3*time.Minute, "db-0", node))
			is, _ := c.addressOf("db-0")
			if at = is; i > 0 && is != at || !ownRange.Contains(is) {
				t.Errorf("it has %s on %s", is, node)
			}
		}
		c.awaitPod(time.Minute, "x-0", "node-000")
		lent, _ := c.addressOf("x-0")
		w.leading().kill()
		w.leadWith(ctx, nil)
		c.wait(2 * time.Minute)
		if again, node := c.addressOf("x-0"); again != lent || node != "node-000" || !c.runs("db-0", "node-000") || c.claim("db-0").Status.Moves != 3 {
			t.Errorf("with the next leader %s has %s, before %s: %+v", node, again, lent, c.claim("db-0").Status)
		}
		if n := w.inSubnet("b"); n > 0 {
			t.Errorf("%d ENIs are in the topologies' subnet", n)
		}
		c.stop("x-0")
		c.stop("db-0")
		c.setSets()
		w.until(5*time.Minute, func() bool {
			held := false
			for _, a := range w.agents {
				held = held || a.holds(at) || a.holds(lent)
			}
			return !held && w.places()[at] == "" && w.places()[lent] == ""
		})
	})
}

// holds tells whether the agent's node state has an address, or a range for it.
func (a *agent) holds(at netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, nic := range a.state.ENIs {
		if nic.MayHave(at) {
			return true
		}
	}
	return false
}

// refuser is a cloud that refuses addresses of other subnets, as long as it says why.
type refuser struct {
	driver.Driver
	mu   *sync.Mutex
	kind *error
	sent *int
}

func (d refuser) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	d.mu.Lock()
	kind := *d.kind
	if a.Subnet != "" {
		*d.sent++
	}
	d.mu.Unlock()
	if kind != nil && a.Subnet != "" {
		return driver.Assigned{}, &driver.Error{Kind: kind, Detail: "NotInWhiteList"}
	}
	return d.Driver.Assign(ctx, a)
}

// No request tells whether an account is on the list.
func TestWhereTheCloudRefusesToCrossAnENIInTheSubnetServes(t *testing.T) {
	for name, kind := range map[string]error{"no right": cloud.ErrForbidden, "a limit": cloud.ErrLimit} {
		t.Run(name, func(t *testing.T) {
			playMoves(t, crossing(setup{}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
				var mu sync.Mutex
				sent := 0
				w.leading().kill()
				w.wrap = func(d driver.Driver) driver.Driver { return refuser{d, &mu, &kind, &sent} }
				w.leadWith(ctx, nil)
				c.run("db-0", "node-000", "fixed")
				c.run("x-0", "node-001", "elastic")
				for pod, node := range map[string]string{"db-0": "node-000", "x-0": "node-001"} {
					t.Logf("%s after %s", pod, c.awaitPod(3*time.Minute, pod, node))
				}
				mu.Lock()
				tried := sent
				kind = nil
				mu.Unlock()
				if n := w.inSubnet("b"); n != 2 || tried > 2 {
					t.Errorf("%d ENIs are in the topologies' subnet, and it was tried %d times", n, tried)
				}
				c.wait(11 * time.Minute)
				c.run("web-0", "node-002", "sticky")
				c.awaitPod(time.Minute, "web-0", "node-002")
				if n := w.inSubnet("b"); n != 2 {
					t.Errorf("when the cloud does it %d ENIs are in the topologies' subnet", n)
				}
			})
		})
	}
}

// A node with one full ENI in subnet a.
func TestAnIdleAddressLeavesItsPlaceToOneOfAnotherSubnet(t *testing.T) {
	playMoves(t, crossing(setup{typ: tiny}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
		a := w.agents[0]
		a.set(3)
		w.until(2*time.Minute, func() bool { return len(a.addresses()) == 5 && w.isQuiet() })
		c.run("db-0", "node-000", "fixed")
		t.Logf("after %s", c.awaitPod(90*time.Second, "db-0", "node-000"))
		c.stop("db-0")
		c.setSets()
		w.until(5*time.Minute, func() bool { return c.general(a) == 5 })
	})
}

func TestWhoWaitsIsToldWhyNoENIOfAnotherSubnetServes(t *testing.T) {
	playMoves(t, crossing(setup{typ: tiny}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
		var mu sync.Mutex
		sent, kind := 0, cloud.ErrForbidden
		w.leading().kill()
		w.wrap = func(d driver.Driver) driver.Driver { return refuser{d, &mu, &kind, &sent} }
		w.leadWith(ctx, nil)
		c.run("db-0", "node-000", "fixed")
		w.until(3*time.Minute, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return strings.Contains(strings.Join(c.heard, "\n"), "addresses of other subnets are not put on its ENIs for now")
		})
	})
}

// What is on an ENI for nobody is never a pod's of the pool, though it shows up beside the others.
func TestAnAddressOfAnotherSubnetThatNoTopologyHasGoesBack(t *testing.T) {
	playMoves(t, crossing(setup{}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
		a := w.agents[0]
		a.set(2)
		w.until(3*time.Minute, func() bool { return len(a.addresses()) >= 3 && w.isQuiet() })
		stray := netip.MustParseAddr("10.1.0.99")
		e := w.store.node("node-000").Status.ENIs
		w.must(w.Update(func(tx *sim.Tx) error {
			_, err := tx.Assign(e[len(e)-1].ID, sim.AddressRequest{V4: []netip.Addr{stray}, Subnet: "b"})
			return err
		}))
		w.until(20*time.Minute, func() bool {
			for _, at := range a.used() {
				if at == stray {
					t.Errorf("a pod of the pool has %s", at)
				}
			}
			return w.places()[stray] == ""
		})
	})
}

// As TestNoHistoryBreaksTheAddressesOfTopologies, with no ENI in the subnet of the topologies as long as the cloud does not refuse.
func TestNoHistoryBreaksAddressesOfOtherSubnets(t *testing.T) {
	count := 8
	if testing.Short() {
		count = 3
	}
	for seed := range count {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playMoves(t, crossing(setup{seed: uint64(seed)}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
				c.setTopology(topologyOf("warm", "Elastic", "", "b", "10.1.0.48", "10.1.0.63"))
				h := newHistories(w, c, uint64(seed))
				h.names = append(h.names, "y-0", "y-1")
				h.happen(ctx, ownRange)
			})
		})
	}
}

// killer ends the leader at a call about an address of the topologies' subnet: before or after its effect.
type killer struct {
	driver.Driver
	calls *int // until then
	after bool
	kill  func()
}

func (d killer) around(ctx context.Context, do func() error) error {
	*d.calls--
	if *d.calls != 0 {
		return do()
	}
	if !d.after {
		d.kill()
		return ctx.Err()
	}
	err := do()
	d.kill()
	return err
}

func (d killer) Assign(ctx context.Context, a driver.Assign) (got driver.Assigned, err error) {
	if a.Subnet == "" {
		return d.Driver.Assign(ctx, a)
	}
	return got, d.around(ctx, func() error { got, err = d.Driver.Assign(ctx, a); return err })
}

func (d killer) Unassign(ctx context.Context, u driver.Unassign) error {
	return d.around(ctx, func() error { return d.Driver.Unassign(ctx, u) })
}

// A leader may end at each call that brings an address across or takes it: the next one goes on.
func TestALeaderEndsAtACallThatCrosses(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; at <= 6; at++ {
			t.Run(fmt.Sprint(after, at), func(t *testing.T) {
				playMoves(t, crossing(setup{}), func(ctx context.Context, w *world, c *claimStore, _ *post) {
					calls := at
					w.leading().kill()
					w.wrap = func(d driver.Driver) driver.Driver { return killer{d, &calls, after, func() { w.leading().cancel() }} }
					w.leadWith(ctx, nil)
					again := func() {
						if l := w.leading(); isEnded(l) {
							time.Sleep(lease.Duration)
							w.leadWith(ctx, nil)
						}
					}
					c.run("x-0", "node-001", "elastic")
					for _, node := range []string{"node-000", "node-001", "node-000"} {
						c.run("db-0", node, "fixed")
						w.until(15*time.Minute, func() bool { again(); c.checkBoxes(); return c.runs("db-0", node) })
					}
					c.stop("x-0")
					c.stop("db-0")
					c.setSets()
					w.until(15*time.Minute, func() bool { again(); return len(w.placesIn(ownRange)) == 0 && c.claim("db-0") == nil })
					if n := w.inSubnet("b"); n > 0 || calls > 0 {
						t.Errorf("%d ENIs are in the topologies' subnet, and %d calls lack", n, calls)
					}
				})
			})
		}
	}
}

// placesIn returns which addresses of a range are on ENIs, but for primary ones.
func (w *world) placesIn(in netip.Prefix) (list []netip.Addr) {
	for at := range w.places() {
		if in.Contains(at) {
			list = append(list, at)
		}
	}
	return list
}
