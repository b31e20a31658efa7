package operator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// post is what becomes of the calls that move addresses in one: how many were sent, and for how long one is on its way of which its sender hears nothing.
type post struct {
	mu   sync.Mutex
	sent int
	late func() time.Duration // of the next one; 0: it is answered at once
}

func (p *post) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// postbox is a driver whose calls go by a post.
type postbox struct {
	driver.Driver
	*post
}

func (d postbox) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	if !a.Take {
		return d.Driver.Assign(ctx, a)
	}
	d.mu.Lock()
	d.sent++
	late := time.Duration(0)
	if d.late != nil {
		late = d.late()
	}
	d.mu.Unlock()
	if late == 0 {
		return d.Driver.Assign(ctx, a)
	}
	go func() {
		time.Sleep(late)
		d.Driver.Assign(context.WithoutCancel(ctx), a)
	}()
	select {
	case <-ctx.Done():
	case <-time.After(timeout):
	}
	return driver.Assigned{}, &driver.Error{Kind: cloud.ErrUnknown, Detail: "the answer was lost"}
}

// ownRange is the range of the subnet that topologies have for themselves.
var ownRange = mustPrefix("10.1.0.0/24")

// playMoves runs a world of nodes with a topology of each strategy, in a subnet of their own: nothing of it is reserved in the cloud.
func playMoves(t *testing.T, s setup, run func(ctx context.Context, w *world, c *claimStore, p *post)) {
	t.Helper()
	if s.nodes == 0 {
		s.nodes = 3
	}
	s.subnets = []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16")}, {ID: "b", V4: ownRange}}
	for range s.nodes {
		s.lieIn = append(s.lieIn, "a")
	}
	play(t, s, func(ctx context.Context, w *world) {
		c := w.withTopologies(topologyOf("fixed", "Fixed", "", "b", "10.1.0.16", "10.1.0.23"), topologyOf("sticky", "Sticky", "5m", "b", "10.1.0.32", "10.1.0.39"),
			topologyOf("elastic", "Elastic", "", "b", "", ""))
		c.setSets(theSet)
		w.store.subnets["b"] = &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Generation: 1, ResourceVersion: "1"}, Spec: crd.SubnetSpec{Use: "Exclusive"}}
		w.store.version = 1
		for _, a := range w.agents {
			a.pods = 2
		}
		p := &post{}
		w.wrap = func(d driver.Driver) driver.Driver { return postbox{d, p} }
		w.begin(ctx)
		w.leadWith(ctx, nil)
		run(ctx, w, c, p)
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

// goesRound has a pod on each of the nodes, one after the other, and tells how many addresses were unassigned meanwhile. Another pod stays on each, so
// that its ENI does.
func (c *claimStore) goesRound(nodes ...string) int {
	c.w.Helper()
	for i, a := range c.w.agents {
		c.run(fmt.Sprint("x-", i), a.name, "elastic")
	}
	for _, node := range nodes { // each has an ENI in the subnet then
		c.run("db-0", node, "fixed")
		c.awaitBound(3*time.Minute, "db-0", node)
	}
	before := c.w.Calls()[sim.ActUnassign]
	for _, node := range nodes {
		c.run("db-0", node, "fixed")
		c.w.Logf("on %s after %s", node, c.awaitBound(time.Minute, "db-0", node))
	}
	return c.w.Calls()[sim.ActUnassign] - before
}

func TestAMoveIsOneCall(t *testing.T) {
	playMoves(t, setup{}, func(ctx context.Context, w *world, c *claimStore, p *post) {
		unassigned := c.goesRound("node-000", "node-001", "node-002")
		if unassigned != 0 || p.count() < 5 {
			t.Errorf("%d calls unassign, and %d move", unassigned, p.count())
		}
		if is := c.claim("db-0").Status; is.Moves != 5 || is.ToInterface != "" {
			t.Errorf("%+v", is)
		}
		if last := recent(ctx, t, w)[0]; last.What != "move" || last.From == "" || last.Addresses != 1 {
			t.Errorf("the last call is told as %+v", last)
		}
		// An agent that says nothing has its time, and a node that is not reached has none.
		a := w.agents[2]
		a.mu.Lock()
		a.silent = true
		a.mu.Unlock()
		c.run("db-0", "node-000", "fixed")
		t.Logf("from a silent agent after %s", c.awaitBound(25*time.Second, "db-0", "node-000"))
		w.store.changeNode("node-000", func(n *operator.Node) { n.Cut = true })
		c.run("db-0", "node-001", "fixed")
		t.Logf("from a node that is not reached after %s", c.awaitBound(8*time.Second, "db-0", "node-001"))
		if p.count() < 7 {
			t.Errorf("%d calls move", p.count())
		}
	})
}

// Where others may be given the address, where it is reserved in the cloud, where the cloud has no such call, or where the API server can't keep
// that one is sent, a move is two calls.
func TestAMoveIsTwoCallsWhereOneIsNotSafe(t *testing.T) {
	for name, test := range map[string]struct {
		setup
		change func(w *world, c *claimStore)
	}{
		"reserved": {change: func(w *world, _ *claimStore) {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			w.store.subnets["b"].Spec.Reserve = []string{"10.1.0.16/28"}
		}},
		"like BCE": {setup: setup{likeBCE: true}},
		"an older CRD": {change: func(_ *world, c *claimStore) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.prunes = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			playMoves(t, test.setup, func(ctx context.Context, w *world, c *claimStore, p *post) {
				if test.change != nil {
					w.leading().kill()
					test.change(w, c)
					w.leadWith(ctx, nil)
				}
				if unassigned := c.goesRound("node-000", "node-001"); p.count() > 0 || unassigned == 0 || c.claim("db-0").Status.Moves != 3 {
					t.Errorf("%d calls move, %d unassign: %+v", p.count(), unassigned, c.claim("db-0").Status)
				}
			})
		})
	}
	t.Run("shared", func(t *testing.T) {
		playClaims(t, setup{}, func(_ context.Context, w *world, c *claimStore) {
			if unassigned := c.goesRound("node-000", "node-001"); unassigned == 0 {
				t.Error("no call unassigns")
			}
		})
	})
}

// What the cloud refuses to move is moved by two calls, and its pod does not wait for longer than that takes.
func TestWhatTheCloudDoesNotMoveIsMovedByTwoCalls(t *testing.T) {
	playMoves(t, setup{}, func(ctx context.Context, w *world, c *claimStore, p *post) {
		w.leading().kill()
		w.wrap = func(d driver.Driver) driver.Driver { return refusesMoves{d} }
		w.leadWith(ctx, nil)
		c.goesRound("node-000", "node-001")
		if is := c.claim("db-0").Status; is.ToInterface != "" || is.Moves != 3 {
			t.Errorf("%+v", is)
		}
	})
}

// refusesMoves is a driver of an account that may move nothing.
type refusesMoves struct{ driver.Driver }

func (d refusesMoves) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	if a.Take {
		return driver.Assigned{}, &driver.Error{Kind: cloud.ErrForbidden, Detail: "no role allows it"}
	}
	return d.Driver.Assign(ctx, a)
}

// A leader's call is on its way for minutes. The leader ends, or does not know that it leads no more, or hears nothing and goes on. Meanwhile the pod
// is where it was to be, back where it was, elsewhere, or its claim ends: the late call takes the address from nobody.
func TestALateMoveStealsNothing(t *testing.T) {
	few := sampled(1, 4)
	for i, leader := range []string{"goes on", "paused", "killed", "killed twice"} {
		for k, then := range []string{"node-000", "node-001", "node-002", "nowhere", "ended"} {
			if (i+k)%few != 0 {
				continue // each leader and each end there is at least once
			}
			for _, late := range []time.Duration{20 * time.Second, 100 * time.Second, 5 * time.Minute} {
				if testing.Short() && late != 100*time.Second {
					continue
				}
				t.Run(fmt.Sprint(leader, " ", then, " ", late), func(t *testing.T) {
					playMoves(t, setup{}, func(ctx context.Context, w *world, c *claimStore, p *post) {
						c.goesRound("node-000", "node-001", "node-002", "node-000")
						p.mu.Lock()
						once := []time.Duration{late}
						p.late = func() (d time.Duration) {
							if len(once) > 0 {
								d, once = once[0], nil
							}
							return d
						}
						before := p.sent
						p.mu.Unlock()
						c.run("db-0", "node-001", "fixed")
						w.until(time.Minute, func() bool { return p.count() > before })
						sent := time.Now()
						switch old := w.leading(); leader {
						case "paused":
							old.pause()
							c.wait(lease.Duration)
							w.leadWith(ctx, nil)
							defer old.cancel()
						case "killed", "killed twice":
							old.kill()
							c.wait(lease.Duration)
							w.leadWith(ctx, nil)
						}
						c.wait(30 * time.Second)
						at, _ := c.addressOf("db-0")
						switch then {
						case "nowhere":
							c.stop("db-0")
						case "ended":
							c.stop("db-0")
							c.endClaim("10.1.0.16")
						default:
							c.run("db-0", then, "fixed")
						}
						if leader == "killed twice" {
							c.wait(20 * time.Second)
							w.leading().kill()
							c.wait(lease.Duration)
							w.leadWith(ctx, nil)
						}
						switch then {
						case "node-001":
							c.awaitPod(time.Minute, "db-0", then)
						case "node-000", "node-002":
							c.awaitPod(15*time.Minute, "db-0", then)
						case "ended":
							w.until(15*time.Minute, func() bool { return c.claim("db-0") == nil })
							if time.Since(sent) < late {
								t.Errorf("%s is given up, and a call may move it yet", at)
							}
						}
						c.wait(max(0, late-time.Since(sent)) + time.Minute)
						if then[:4] == "node" && !c.runs("db-0", then) {
							t.Errorf("the late call has taken its address from its pod")
						}
						c.run("db-0", "node-002", "fixed")
						c.awaitPod(15*time.Minute, "db-0", "node-002")
						w.until(15*time.Minute, func() bool { return c.claim("db-0").Status.ToInterface == "" })
					})
				})
			}
		}
	}
}

// A leader is killed at each of the effects of moves in one call, before it and after it: the cloud's changes, what is written of claims and of
// nodes. The next one goes on.
func TestALeaderIsKilledAtEachEffectOfAMove(t *testing.T) {
	deaths := 0
	step := sampled(1, 5)
	for at := 1; ; at += step {
		var died atomic.Bool
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " after ", after), func(t *testing.T) {
				playMoves(t, setup{nodes: 2}, func(ctx context.Context, w *world, c *claimStore, p *post) {
					c.goesRound("node-000", "node-001", "node-000")
					var n atomic.Int64
					// dies tells whether the leader dies at this effect, after it has begun to take place or before.
					dies := func() bool {
						if n.Add(1) != int64(at) {
							return false
						}
						died.Store(true)
						if !after {
							w.leading().cancel()
							return true
						}
						go func() {
							time.Sleep(time.Nanosecond)
							w.leading().cancel()
						}()
						return false
					}
					w.leading().kill()
					w.effect = func(do func(context.Context) error, ctx context.Context) error {
						if dies() {
							return context.Canceled
						}
						return do(context.WithoutCancel(ctx))
					}
					w.store.overtake = func(string) { dies() }
					c.mu.Lock()
					c.passes = func(string) { dies() }
					c.mu.Unlock()
					w.leadWith(ctx, nil)
					go func() {
						for ctx.Err() == nil {
							<-w.leading().ended
							time.Sleep(lease.Duration)
							if ctx.Err() == nil {
								w.leadWith(ctx, nil)
							}
						}
					}()
					for _, node := range []string{"node-001", "node-000"} {
						c.run("db-0", node, "fixed")
						c.awaitPod(15*time.Minute, "db-0", node)
					}
					w.until(15*time.Minute, func() bool { is := c.claim("db-0").Status; return is.Phase == "Bound" && is.ToInterface == "" })
					if on := w.places()[mustPrefix("10.1.0.16/32").Addr()]; on != "node-000" {
						t.Errorf("it is on %q", on)
					}
				})
			})
		}
		if !died.Load() {
			break
		}
		deaths++
	}
	if deaths < 10/step {
		t.Errorf("only %d effects were met", deaths)
	}
}

// The histories of claims, in a subnet where addresses move in one call, of which some are late.
func TestNoHistoryWithLateMovesBreaksTheAddressesOfTopologies(t *testing.T) {
	count := 12
	if testing.Short() {
		count = sampled(4, 1)
	}
	moves := 0
	for seed := range count {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playMoves(t, setup{nodes: 3, seed: uint64(seed)}, func(ctx context.Context, w *world, c *claimStore, p *post) {
				h := newHistories(w, c, uint64(seed))
				p.mu.Lock()
				chance := rand.New(rand.NewPCG(uint64(seed), 4))
				p.late = func() time.Duration {
					if chance.IntN(3) > 0 {
						return 0
					}
					return time.Duration(1+chance.IntN(300)) * time.Second
				}
				p.mu.Unlock()
				h.happen(ctx, ownRange)
				moves += p.count()
			})
		})
	}
	if moves < count {
		t.Errorf("only %d calls move addresses", moves)
	}
}
