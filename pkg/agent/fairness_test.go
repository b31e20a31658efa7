package agent

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"pgregory.net/rapid"
)

// fairWithin is how long a node keeps more than its pods need and the spare while pods wait in
// its subnet, at most: until it sees that the subnet is empty, and then up to five describes and
// two for each of its steps down, for what one of them releases is seen before it is taken.
func fairWithin(describe time.Duration) time.Duration { return describe*3/2 + 15*time.Minute }

// crowding is a change of how many pods a node has.
type crowding struct {
	node, pods int
	wait       time.Duration
	killed     bool // its agent is, in the middle of that time
}

// subnetwork is a subnet with nodes, and what happens to their pods.
type subnetwork struct {
	nodes    int
	bits     int    // of the subnet
	reach    []bool // which nodes may have an ENI in a second subnet, too, which has room
	effort   bool
	strategy scale.Strategy
	lag      time.Duration // of describes
	describe time.Duration
	turns    []crowding
}

func drawSubnetwork(t *rapid.T) subnetwork {
	s := subnetwork{nodes: rapid.IntRange(2, 5).Draw(t, "nodes"), bits: rapid.SampledFrom([]int{25, 26, 27}).Draw(t, "bits"),
		strategy: rapid.SampledFrom([]scale.Strategy{scale.Equation, scale.KPA}).Draw(t, "strategy"), effort: rapid.Bool().Draw(t, "besteffort"), lag: time.Duration(rapid.IntRange(0, 9).Draw(t, "lag")) * time.Second, describe: rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute}).Draw(t, "describe")}
	s.reach = rapid.SliceOfN(rapid.Bool(), s.nodes, s.nodes).Draw(t, "reach")
	if rapid.Bool().Draw(t, "no other subnet") {
		s.reach = make([]bool, s.nodes)
	}
	s.turns = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) crowding {
		return crowding{rapid.IntRange(0, s.nodes-1).Draw(t, "node"), rapid.IntRange(0, 45).Draw(t, "pods"),
			time.Duration(rapid.SampledFrom([]int{1, 20, 200, 1500}).Draw(t, "seconds")) * time.Second, rapid.IntRange(0, 3).Draw(t, "killed") == 0}
	}), 3, 10).Draw(t, "turns")
	return s
}

// Whoever the nodes are and however their pods come and go: while a pod waits in a subnet, no
// node of it keeps more than its own pods need and the spare for long.
func TestNoNodeKeepsWhatPodsOfOthersWaitFor(t *testing.T) {
	check := func(s subnetwork) (wrong error) {
		synctest.Test(t, func(t *testing.T) { wrong = s.play(t) })
		return wrong
	}
	if *soakSteps > 100_000 { // more than the default: each takes a while
		rapid.Check(t, func(r *rapid.T) {
			s := drawSubnetwork(r)
			if wrong := check(s); wrong != nil {
				r.Fatalf("%v; %+v", wrong, s)
			}
		})
		return
	}
	for seed := range 12 {
		s := rapid.Custom(drawSubnetwork).Example(seed)
		if wrong := check(s); wrong != nil {
			t.Errorf("%v; %+v", wrong, s)
		}
	}
}

func (s subnetwork) play(t *testing.T) error {
	w := newWorld(t, sim.Options{Lag: s.lag, Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), s.bits).String()), subnet("subnet-b", "10.0.8.0/21"))
	perENI := map[string]int{}
	for i := range s.nodes {
		l := eni.Limits{ENIs: 1, V4: 60}
		if s.reach[i] {
			l = eni.Limits{ENIs: 2, V4: 20 + 20*(i%3)}
		}
		n := w.addNode(testConfig(fmt.Sprint("n", i)), sim.NodeSpec{Limits: l, Subnet: "subnet-a"})
		perENI[n.name] = l.V4
		n.conf.Cloud.Describe, n.conf.Pool.Scale.Strategy = s.describe, s.strategy
		if s.effort {
			n.conf.Pool.Mode, n.conf.Pool.PreAllocate, n.conf.Pool.MaxAboveWatermark, n.conf.Pool.MinAllocate = pool.BestEffort, 3, 6, 10
		}
		inCluster(n)
		n.serial = 1000 * i // each draws numbers of its own
	}
	for _, n := range w.nodes {
		n.start(-1, false)
		defer n.stop()
		sleep(7 * time.Second)
	}
	f := fairness{w: w, within: fairWithin(s.describe), over: map[string]time.Duration{}, perENI: perENI}
	for _, turn := range append(s.turns, crowding{0, 0, f.within, false}) {
		if turn.wait < f.within {
			w.nodes[turn.node].run(turn.pods)
		}
		if turn.killed {
			if err := f.pass(turn.wait / 2); err != nil {
				return err
			}
			turn.wait -= turn.wait / 2
			f.restart(w.nodes[turn.node])
		}
		if err := f.pass(turn.wait); err != nil {
			return err
		}
	}
	before := w.moves()
	if err := f.pass(time.Hour); err != nil {
		return err
	}
	if moved := w.moves() - before; moved > mostMoves*s.nodes {
		return fmt.Errorf("%d calls moved addresses of %d nodes in an hour in which no pod came or went", moved, s.nodes)
	}
	return w.check()
}

// mostMoves is how many calls that move addresses a node makes in an hour in which no pod comes or goes, at most, however
// near its subnet is to its end: the steps down to what its pods need, each with what comes for it elsewhere.
const mostMoves = 8

// idleIn returns how many addresses the node has in the subnet that no pod needs.
func (n *testNode) idleIn(subnet string, now time.Duration) (idle int) {
	attached := n.attached()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, nic := range attached {
		if nic.Subnet == subnet {
			_, k, _ := slotsOf(n.cached, nic.Index, now)
			idle += k
		}
	}
	return idle
}

// run makes that many pods the node's, each with a sandbox.
func (n *testNode) run(pods int) {
	for _, k := range n.keys()[min(len(n.keys()), pods):] {
		n.del(k)
	}
	n.forget()
	n.mu.Lock()
	var kept []eni.Pod
	for _, p := range n.pods {
		kept = append(kept, eni.Pod{UID: p.owner.UID, Namespace: p.owner.Namespace, Name: p.owner.Pod})
	}
	n.api.pods = kept
	n.mu.Unlock()
	n.hear()
	n.crowd(pods - len(kept))
}

// fairness is since when which nodes keep more than they need while pods wait.
type fairness struct {
	w      *world
	within time.Duration
	over   map[string]time.Duration
	perENI map[string]int // addresses, the primary among them, by node
}

// pass lets that time pass.
func (f *fairness) pass(d time.Duration) error {
	for end := f.w.now() + d; f.w.now() < end; {
		sleep(time.Second)
		if err := f.look(); err != nil {
			return err
		}
	}
	return nil
}

// restart kills the node's agent and starts another one, which knows nothing of the subnet yet.
func (f *fairness) restart(n *testNode) {
	n.kill()
	n.serial += 100
	n.start(-1, false)
	delete(f.over, n.name)
}

// hasRoom tells whether an ENI of the node in the subnet may carry more.
func (f *fairness) hasRoom(n *testNode, subnet string) bool {
	return slices.ContainsFunc(n.attached(), func(nic cloud.Interface) bool {
		return nic.Subnet == subnet && len(nic.Addresses)+1 < f.perENI[n.name]
	})
}

func (f *fairness) look() error {
	waiting := 0 // for addresses of subnet-a, where all nodes are; in the other one are enough
	for _, n := range f.w.nodes {
		if left := n.retry(); left > 0 && f.hasRoom(n, "subnet-a") && !f.hasRoom(n, "subnet-b") {
			waiting += left
		}
	}
	now := f.w.now()
	for _, n := range f.w.nodes {
		n.mu.Lock()
		d := countDemand(n.cached, now, 0)
		keeps := d.owned - d.assigned - len(n.waiting) - n.conf.Pool.Scale.ExhaustedSpare
		n.mu.Unlock()
		if waiting > 0 && keeps > 0 { // what it has elsewhere is no use to those that wait
			keeps = min(keeps, n.idleIn("subnet-a", now))
		}
		if waiting == 0 || keeps <= 0 {
			delete(f.over, n.name)
			continue
		}
		if f.over[n.name] == 0 {
			f.over[n.name] = now
		}
		if since := now - f.over[n.name]; since > f.within {
			return fmt.Errorf("%s keeps %d addresses too many, %d pods have been waiting for %s", n.name, keeps, waiting, since)
		}
	}
	return nil
}

// alone is a node that has all of a subnet that others left, and what happens to its pods. By itself
// its pool would not shrink: it wants more than there is, or keeps what is above its watermark.
type alone struct {
	has      int
	refused  bool // it asked for more when it took the last ones
	effort   bool
	lag      time.Duration // of describes
	describe time.Duration
	turns    []crowding
}

func drawAlone(t *rapid.T) alone {
	s := alone{has: rapid.IntRange(4, 14).Draw(t, "has"), refused: rapid.Bool().Draw(t, "refused"), effort: rapid.Bool().Draw(t, "besteffort"), lag: time.Duration(rapid.IntRange(0, 9).Draw(t, "lag")) * time.Second, describe: rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute}).Draw(t, "describe")}
	s.turns = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) crowding {
		return crowding{0, rapid.IntRange(0, s.has+3).Draw(t, "pods"),
			time.Duration(rapid.SampledFrom([]int{1, 20, 200, 1500, 4000}).Draw(t, "seconds")) * time.Second, false}
	}), 3, 10).Draw(t, "turns")
	return s
}

// Where nobody else waits two addresses lie in the subnet at most, and they do so once for each
// time that the node's own pods came and took them.
func TestANodeAloneInAFullSubnetKeepsWhatItHas(t *testing.T) {
	check := func(s alone) (wrong error) {
		synctest.Test(t, func(t *testing.T) { wrong = s.play(t) })
		return wrong
	}
	if *soakSteps > 100_000 {
		rapid.Check(t, func(r *rapid.T) {
			s := drawAlone(r)
			if wrong := check(s); wrong != nil {
				r.Fatalf("%v; %+v", wrong, s)
			}
		})
		return
	}
	for seed := range 12 {
		s := rapid.Custom(drawAlone).Example(seed)
		if wrong := check(s); wrong != nil {
			t.Errorf("%v; %+v", wrong, s)
		}
	}
}

func (s alone) play(t *testing.T) error {
	w := newWorld(t, sim.Options{Lag: s.lag, Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/24"))
	n := w.addNode(testConfig("n0"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	n.conf.Cloud.Describe = s.describe
	if s.effort {
		n.conf.Pool.Mode, n.conf.Pool.PreAllocate, n.conf.Pool.MaxAboveWatermark, n.conf.Pool.MinAllocate = pool.BestEffort, 3, 32, 0
		if s.refused {
			n.conf.Pool.MinAllocate = 20
		}
	}
	inCluster(n)
	if !s.refused {
		if err := w.account.LeaveFree("subnet-a", s.has); err != nil {
			t.Fatal(err)
		}
	}
	n.start(-1, false)
	defer n.stop()
	if s.refused {
		for w.calls()["AssignAddresses"] == 0 {
			sleep(50 * time.Millisecond)
		}
		if err := w.account.LeaveFree("subnet-a", s.has); err != nil {
			t.Fatal(err)
		}
	}
	sleep(30 * time.Second)
	if n.total() != s.has {
		return fmt.Errorf("it has %d addresses at first, want %d", n.total(), s.has)
	}
	for _, turn := range append(s.turns, crowding{0, 0, 2 * time.Hour, false}) {
		n.run(turn.pods)
		for end := w.now() + turn.wait; w.now() < end; {
			sleep(time.Second)
			n.retry()
			if has := n.total(); has < s.has-firstOffer {
				return fmt.Errorf("it has %d addresses, %d went to nobody", has, s.has-has)
			}
		}
	}
	if released := w.calls()["UnassignAddresses"]; released > len(s.turns)+1 {
		return fmt.Errorf("it released addresses %d times in %d turns", released, len(s.turns))
	}
	return w.check()
}

// A node looks more often while that can change something: for a while where it can't release
// what it has too many, and never much less often than each minute where its pods wait.
func TestEagerLooksEnd(t *testing.T) {
	for _, draw := range []float64{0, 0.5, 0.999} {
		spare, hungry := eagerness{spare: true, draw: draw, from: 1}, eagerness{hungry: true, draw: draw, from: 1}
		for range 40 {
			spare.noteDescribe(rand.New(rand.NewPCG(1, 2)))
			hungry.noteDescribe(rand.New(rand.NewPCG(1, 2)))
		}
		first := eagerness{spare: true, draw: draw, from: 1}.due(time.Hour) - time.Hour
		if first < eagerLook*3/4 || first > eagerLook*5/4 || spare.due(time.Hour) < 2*time.Hour || hungry.due(time.Hour) > time.Hour+longestEager*5/4 {
			t.Errorf("draw %g: first after %s, later after %s, with pods that wait after %s", draw, first, spare.due(time.Hour)-time.Hour, hungry.due(time.Hour)-time.Hour)
		}
	}
}
