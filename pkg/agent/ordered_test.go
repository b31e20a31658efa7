package agent

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// operated runs a test of a node whose operator calls the cloud.
func operated(t *testing.T, test func(t *testing.T, n *testNode, op *testOperator)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.4.0/22"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 16}, Subnet: "subnet-a"})
		n.callsBy(agentconf.Operator)
		op := n.operate()
		defer op.end()
		test(t, n, op)
	})
}

// operatedWith is operated of a node whose agent runs, and whose first pods have their addresses.
func operatedWith(t *testing.T, pods int, test func(t *testing.T, n *testNode, op *testOperator)) {
	operated(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }() // of the agent that runs then
		sleep(10 * time.Second)
		if pods > 0 {
			n.fillWith(t, pods)
		}
		test(t, n, op)
	})
}

// must fails the test where something is wrong with the world.
func (n *testNode) must(t *testing.T) {
	t.Helper()
	if err := n.w.check(); err != nil {
		t.Fatal(err)
	}
}

// fillWith starts pods and waits for their addresses.
func (n *testNode) fillWith(t *testing.T, pods int) {
	t.Helper()
	for range pods {
		_ = n.add()
	}
	n.all(t, 5*time.Minute)
	n.must(t)
}

// noCalls fails the test if the agent has called the cloud.
func (n *testNode) noCalls(t *testing.T) {
	t.Helper()
	if calls := n.w.calls(); len(calls) > 0 {
		t.Errorf("the agent called the cloud: %v", calls)
	}
}

func TestAnOperatedNodeServesPodsAndReleases(t *testing.T) {
	operatedWith(t, 0, func(t *testing.T, n *testNode, op *testOperator) {
		if is := op.object(); is.Status.Mode != order.Operator || is.Spec.Boot != "boot-1" || n.cached == nil || !n.status().Ready {
			t.Fatalf("%+v\n%+v", is, n.status())
		}
		n.fillWith(t, 40)
		for _, k := range n.keys() {
			n.del(k)
		}
		for range 40 {
			sleep(time.Minute)
			n.must(t)
		}
		is := op.object()
		if have := order.Have(is.Spec, is.Status); have > 32 || len(is.Spec.Release)+len(is.Status.Releasing) > 0 {
			t.Errorf("%d slots are left: %+v", have, is)
		}
		sleep(time.Hour)
		if op.object().Version != is.Version {
			t.Error("a quiet node's object was written")
		}
		n.noCalls(t)
	})
}

// Demand that comes back before the operator has accepted a release gets the same addresses; what is accepted goes.
func TestAReleaseIsWithdrawnUntilItIsAccepted(t *testing.T) {
	operatedWith(t, 40, func(t *testing.T, n *testNode, op *testOperator) {
		op.set(func(op *testOperator) { op.away = true })
		for _, k := range n.keys() {
			n.del(k)
		}
		for len(op.object().Spec.Release) == 0 {
			sleep(time.Minute)
		}
		sleep(30 * time.Minute)
		before := n.attached()
		if going := op.object().Spec.Release; len(going) < 16 {
			t.Fatalf("%d addresses go back", len(going))
		}
		op.set(func(op *testOperator) { op.meddles = 3 })
		n.fillWith(t, 40)
		if going := op.object().Spec.Release; len(going) > 16 {
			t.Errorf("%d addresses still go back, of a node that needs them", len(going))
		}
		op.set(func(op *testOperator) { op.away = false })
		sleep(10 * time.Minute)
		n.must(t)
		if len(n.attached()) != len(before) {
			t.Errorf("%d ENIs were %d", len(n.attached()), len(before))
		}
		if op.refused == 0 {
			t.Error("no write conflicted")
		}
		n.noCalls(t)
	})
}

// The write that withdraws may be done, and its answer lost: nothing is handed out before another one says so.
func TestAnAnswerThatIsLostFreesNothing(t *testing.T) {
	cached := freeCache(4)
	going := cached.Addresses[0].Addr
	cached.StartRelease([]netip.Addr{going}, time.Hour)
	view := order.View{Spec: order.Spec{Mode: order.Operator, Release: hostPrefixes([]netip.Addr{going})},
		Status: order.Status{Mode: order.Operator, ENIs: []order.ENI{{ID: "eni-0", State: order.Attached}}}}
	for _, line := range cached.Addresses {
		view.Status.ENIs[0].Addresses = append(view.Status.ENIs[0].Addresses, hostPrefixes([]netip.Addr{line.Addr})...)
	}
	k := asking{view: view, cached: cached, now: time.Hour, slots: 4, back: []netip.Addr{going}}
	next, withdrawn := k.spec()
	if len(next.Release) > 0 || len(withdrawn) != 1 {
		t.Fatalf("%v, %v", next.Release, withdrawn)
	}
	k.view.Spec = next // a watch shows it, and no answer came
	if next, withdrawn = k.spec(); len(next.Release) != 1 || len(withdrawn) > 0 {
		t.Errorf("%v, %v", next.Release, withdrawn)
	}
}

func TestTheOperatorIsAwayForAnHour(t *testing.T) {
	operated(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.api = &testAPI{}
		n.hearLater()
		n.start(-1, false)
		defer func() { n.stop() }()
		n.hear()
		sleep(10 * time.Second)
		n.fillWith(t, 20)
		op.set(func(op *testOperator) { op.away = true })
		began := n.w.now()
		for n.w.now()-began < time.Hour {
			n.del(n.keys()[0])
			_ = n.add()
			sleep(time.Minute)
			n.must(t)
		}
		if left := n.retry(); left > 0 {
			t.Errorf("%d pods wait though the pool has enough for all", left)
		}
		for range 60 {
			_ = n.add()
		}
		sleep(3 * time.Minute)
		if left := n.retry(); left == 0 {
			t.Error("nobody called the cloud, and all pods have addresses")
		}
		cause := n.status().Causes
		if len(cause) == 0 || cause[0].Kind != "operator-silent" || !strings.Contains(cause[0].What, "no answer from the operator since ") {
			t.Errorf("%+v", cause)
		}
		if r := n.last(); !r.Faulty || r.Reason != "OperatorSilent" {
			t.Errorf("%+v", r)
		}
		op.set(func(op *testOperator) { op.away = false })
		for range 2 { // one ENI after the other
			sleep(10 * time.Second)
			n.retry()
		}
		sleep(5 * time.Minute)
		if r := n.last(); r.Reason == "OperatorSilent" {
			t.Errorf("%+v", r)
		}
		n.must(t)
		n.noCalls(t)
	})
}

// hearLater makes the cluster of a node known that has no agent yet.
func (n *testNode) hearLater() { n.life = &life{wake: make(chan struct{}, 1)} }

// What the operator tells of subnets is what people are told.
func TestCausesOfTheOperatorAreTold(t *testing.T) {
	operatedWith(t, 0, func(t *testing.T, n *testNode, op *testOperator) {
		op.set(func(op *testOperator) {
			op.blocks = []order.Cause{{Reason: "SubnetFull", Message: "subnet-a has no address left", Until: time.Now().Add(time.Hour)}, {Reason: "Cosmic"}}
		})
		began := n.w.now()
		op.set(func(op *testOperator) { op.full = true })
		for range 60 {
			_ = n.add()
		}
		for n.w.now()-began < 3*time.Minute {
			sleep(10 * time.Second)
			n.retry()
		}
		s := n.status()
		if len(s.Causes) == 0 || s.Causes[0].Kind != "subnet-full" || !strings.Contains(s.Causes[0].What, "subnet-a has no address left") || s.Causes[0].Next.IsZero() {
			t.Errorf("%+v", s.Causes)
		}
		for _, c := range s.Causes {
			if c.Kind == "no-subnet" { // which the agent knows nothing of
				t.Errorf("%+v", c)
			}
		}
	})
}

// The store may be put back to what it had before: nothing of that is adopted until the operator has described.
func TestAStatusOfBeforeIsNotAdopted(t *testing.T) {
	operatedWith(t, 40, func(t *testing.T, n *testNode, op *testOperator) {
		backup := op.object()
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(40 * time.Minute)
		gone := order.Have(backup.Spec, backup.Status) - order.Have(op.object().Spec, op.object().Status)
		if gone < 16 {
			t.Fatalf("%d addresses went back", gone)
		}
		op.set(func(op *testOperator) {
			op.away = true
			backup.Generation = op.is.Generation
			op.put(backup)
		})
		sleep(time.Minute)
		n.must(t)
		if seen := op.object().Spec.SeenRevision; seen <= backup.Status.Revision {
			t.Errorf("the operator is told of revision %d; the status has %d", seen, backup.Status.Revision)
		}
		op.succeed()
		op.set(func(op *testOperator) { op.away = false })
		sleep(10 * time.Minute)
		n.must(t)
		n.fillWith(t, 30)
		n.noCalls(t)
	})
}

// An agent may be killed before and after everything that it does.
func TestAnOperatedNodeIsKilledAtEachEffect(t *testing.T) {
	step := 3
	if testing.Short() {
		step = 20
	}
	for at := 1; at < 70; at += step {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprint(at, before), func(t *testing.T) {
				operated(t, func(t *testing.T, n *testNode, op *testOperator) {
					n.start(at, before)
					defer func() { n.stop() }()
					work := func(pods int) {
						for len(n.keys()) > pods {
							n.del(n.keys()[0])
						}
						for range pods - len(n.keys()) {
							_ = n.add()
						}
						for range 10 {
							sleep(40 * time.Second)
							n.must(t)
							if n.isDead() {
								n.stop()
								n.start(-1, false)
							}
							n.retry()
						}
					}
					work(1)
					work(40)
					work(2)
					work(30)
					if len(n.keys()) < 30 {
						t.Errorf("%d pods have addresses: %+v", len(n.keys()), n.status())
					}
					n.noCalls(t)
				})
			})
		}
	}
}

// Everything that may go wrong, at random.
func TestOperatedNodesSoak(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			operated(t, func(t *testing.T, n *testNode, op *testOperator) {
				n.start(-1, false)
				defer func() { n.stop() }()
				for range 150 {
					op.disturb(r)
					left := n.retry()
					for range min(r.IntN(12), 45-len(n.keys())-left) {
						_ = n.add()
					}
					keys := n.keys()
					for range min(len(keys), r.IntN(12)) {
						n.del(keys[r.IntN(len(keys))])
					}
					sleep(time.Duration(r.IntN(120)) * time.Second)
					n.retry()
					n.must(t)
					if n.isDead() || r.IntN(20) == 0 {
						n.stop()
						n.start(r.IntN(60)-20, r.IntN(2) == 0)
					}
				}
				op.set(func(op *testOperator) { op.away, op.deaf, op.lagging, op.meddles = false, false, false, 0 })
				if n.isDead() {
					n.stop()
				} else {
					n.kill()
				}
				n.start(-1, false)
				n.all(t, 10*time.Minute)
				n.must(t)
				n.noCalls(t)
			})
		})
	}
}

// disturb lets things go wrong, or well again.
func (op *testOperator) disturb(r *rand.Rand) {
	if r.IntN(10) == 0 {
		op.succeed()
	}
	op.set(func(op *testOperator) {
		op.away, op.deaf, op.lagging = r.IntN(4) == 0, r.IntN(8) == 0, r.IntN(6) == 0
		if r.IntN(3) == 0 {
			op.meddles = r.IntN(3)
		}
	})
}

// Rule W: who does not wait writes once a second at most.
func TestANodeWithoutWaitingPodsWritesOnceASecond(t *testing.T) {
	operatedWith(t, 20, func(t *testing.T, n *testNode, op *testOperator) {
		sleep(time.Minute)
		before := op.writes
		for range 10 { // demand changes with each of them
			_ = n.add()
			sleep(100 * time.Millisecond)
			n.del(n.keys()[0])
			sleep(100 * time.Millisecond)
		}
		if writes := op.writes - before; writes > 3 {
			t.Errorf("%d writes in 2 seconds", writes)
		}
	})
}

// freeCache returns the cache of an ENI with free addresses.
func freeCache(n int) *ipam.State {
	cached := cacheWith(nil, n, eni.Free)
	cached.ENIs = []eni.Interface{{ID: "eni-0", Index: 0, Device: "eth0"}}
	return cached
}

// A spec is a function of what is known: what the object can't take is cut off, and what is read again is the same.
func TestWhatTheNodeAsksFor(t *testing.T) {
	cached := freeCache(6)
	cached.MarkHeld(map[netip.Addr]string{cached.Addresses[1].Addr: "dev docker0"}, time.Hour)
	cached.Reserve(map[netip.Addr]eni.Reservation{cached.Addresses[2].Addr: {Topology: "db"}}, time.Hour)
	k := asking{view: order.View{Spec: order.Spec{Mode: order.Operator, Boot: "boot"}}, cached: cached, now: time.Hour, families: []eni.Family{eni.IPv4},
		pool: poolFor(pool.Config{Mode: pool.Burstable, Multiple: 20, ReturnENIs: true, MaxAllocate: 9000}, 20, 2), slots: 40, waiting: 5000, unlinked: []string{"eni-0"}}
	next, _ := k.spec()
	if next.Slots != 22 || next.Waiting != 4096 || next.Pool.MaxAllocate != 22 || next.Pool.Multiple != 8 || next.Pool.Scale.Batch != 1 || next.Boot != "boot" {
		t.Errorf("%+v", next)
	}
	if !slices.Equal(next.Held, hostPrefixes([]netip.Addr{cached.Addresses[1].Addr})) || !slices.Equal(next.NoLink, []string{"eni-0"}) || next.Idle != nil {
		t.Errorf("%+v", next)
	}
	cached = freeCache(6)
	if k.cached = cached; len(cached.Addresses) != 6 {
		t.Fatal(cached)
	}
	if next, _ = k.spec(); !slices.Equal(next.Idle, []string{"eni-0"}) {
		t.Errorf("%v is idle", next.Idle)
	}
}

// After a boot there is neither pod nor cache, and the object still has what was to go back: that is not handed out.
func TestAnOperatedNodeBootsAgain(t *testing.T) {
	operatedWith(t, 40, func(t *testing.T, n *testNode, op *testOperator) {
		op.set(func(op *testOperator) { op.away = true })
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(40 * time.Minute)
		going := op.object().Spec.Release
		if len(going) < 16 {
			t.Fatalf("%d addresses go back", len(going))
		}
		n.kill()
		n.reboot()
		op.boot = "boot-2"
		n.start(-1, false)
		sleep(time.Minute)
		if is := op.object(); is.Spec.Boot != "boot-2" || n.cached == nil {
			t.Fatalf("%+v", is)
		}
		for _, line := range n.lines() {
			t.Errorf("%s is a pod's", line.Addr)
		}
		for _, p := range op.object().Spec.Release {
			for _, line := range n.cached.Addresses {
				if line.Addr == p.Addr() && line.State != eni.Releasing {
					t.Errorf("%s is %s, and the operator may accept it", line.Addr, line.State)
				}
			}
		}
		op.set(func(op *testOperator) { op.away = false })
		n.fillWith(t, 30)
		n.noCalls(t)
	})
}

// Somebody deletes the object: it is made again, and the node keeps what it has.
func TestANodeNetworkThatIsDeletedIsMadeAgain(t *testing.T) {
	operatedWith(t, 20, func(t *testing.T, n *testNode, op *testOperator) {
		before, revision := n.lines(), op.object().Status.Revision
		op.set(func(op *testOperator) { op.is = order.Object{} })
		sleep(time.Minute)
		is := op.object()
		if is.Version == "" || is.Status.Mode != order.Operator || is.Status.Revision <= revision {
			t.Fatalf("%+v, the one before had revision %d", is, revision)
		}
		if !sameLines(before, n.lines()) {
			t.Errorf("pods' addresses changed from %v to %v", before, n.lines())
		}
		n.fillWith(t, 20)
		n.noCalls(t)
	})
}

// An object was there when the agent made its own, and is gone before the agent has heard of it: it makes one.
func TestANodeNetworkThatCouldNotBeMadeIsMadeOnceThereIsNone(t *testing.T) {
	operatedWith(t, 20, func(t *testing.T, n *testNode, op *testOperator) {
		op.set(func(op *testOperator) {
			op.is, op.shown, op.lagging, op.meddles = order.Object{}, order.Object{}, true, 1
		})
		sleep(10 * time.Second)
		if op.refused == 0 {
			t.Fatal("no write conflicted")
		}
		op.set(func(op *testOperator) { op.is, op.lagging = order.Object{}, false })
		sleep(5 * time.Minute)
		if is := op.object(); is.Version == "" || is.Status.Mode != order.Operator {
			t.Errorf("there is %+v", is)
		}
		n.fillWith(t, 20)
	})
}

// reboot takes away what a node has in memory alone.
func (n *testNode) reboot() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cached, n.cacheErr, n.memory = nil, nodecache.ErrBoot, nil
	n.pods, n.waiting, n.routed = map[eni.Key]*testPod{}, map[eni.Key]nodecache.PendingADD{}, map[netip.Addr]bool{}
}

// Before its first describe an operator knows of no ENI: that is no reason to take the node's from its pods.
func TestAStatusWithoutTheNodesPrimaryENITakesNothing(t *testing.T) {
	operatedWith(t, 20, func(t *testing.T, n *testNode, op *testOperator) {
		before := n.lines()
		op.set(func(op *testOperator) {
			op.away = true
			next := op.is
			next.Status.ENIs, next.Status.Revision = nil, next.Status.Revision+1
			op.put(next)
		})
		sleep(time.Minute)
		if !sameLines(before, n.lines()) || len(n.cached.ENIs) == 0 {
			t.Errorf("pods' addresses changed from %v to %v on %v", before, n.lines(), n.cached.ENIs)
		}
		n.must(t)
	})
}

// What the node cache has seen is written down before it sees it: an older status could be adopted else.
func TestNothingIsAdoptedWhoseRevisionCantBeWrittenDown(t *testing.T) {
	operatedWith(t, 8, func(t *testing.T, n *testNode, op *testOperator) {
		n.mu.Lock()
		n.full = true
		n.mu.Unlock()
		had := len(n.cached.Addresses)
		for range 30 {
			_ = n.add()
		}
		sleep(2 * time.Minute)
		if got := len(n.cached.Addresses); got != had {
			t.Errorf("%d addresses were %d", got, had)
		}
		n.mu.Lock()
		n.full = false
		n.mu.Unlock()
		n.all(t, 10*time.Minute)
		n.must(t)
	})
}
