package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

var errKilled = errors.New("the agent was killed")

// world is an account with nodes, each with an agent that can be killed.
type world struct {
	t       testing.TB
	account *sim.Account
	nodes   []*testNode
	taken   map[netip.Addr]bool // addresses taken away by a fault: nobody's fault any more
	begin   time.Time
	log     *slog.Logger

	mu    sync.Mutex
	count map[string]int // calls of the agents, by method
	trace io.Writer      // takes what happens, nil if nobody wants to know
}

// traced tells what has just happened.
func (w *world) traced(what ...any) {
	if w.trace == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintln(w.trace, append([]any{w.now()}, what...)...)
}

// testNode is a node without a kernel: what the plugin and the kernel would hold is
// in maps.
type testNode struct {
	linkLooks    int               // how often its links were read
	blocked      []string          // chains of others that cut pods off
	misrouted    []string          // routes of others that pods' packets take
	undone       []string          // what each comparison finds missing, and puts right
	changer      string            // who changes nftables
	conflicts    []string          // host ports that others claim
	hears        bool              // its kernel announces what others change
	ofTopologies []eni.TopologyPod // pods that the cluster shows of it
	beat         func()
	operator     *testOperator                       // it calls the cloud for the node, nil: the agent does
	zone         *zone                               // whose operator does, nil: there is none
	over         func(driver.Driver) driver.Driver   // what an engine works over, nil: the account's own
	options      func(engine.Options) engine.Options // of engines, nil: as they are
	w            *world
	name         string
	phase        time.Duration // how much longer ago it booted than the first
	shows        *int          // what Subnets show as left where they reserve for blocks; nil: they don't
	showsOf      string        // of which subnet, "" for all
	conf         agentconf.Config
	as           string // the release and configuration of its agent

	mu       sync.Mutex
	cached   *ipam.State // nil: missing
	cacheErr error       // why it can't be used, if it can't
	readOnly error       // why it can't be written, if it can't
	memory   []byte
	full     bool                // there is no room for the memory
	kept     []byte              // on a disk
	keptErr  error               // why nothing can be kept there, if it can't
	saves    int                 // of the memory so far
	routed   map[netip.Addr]bool // what the kernel sends out through the right ENI
	pods     map[eni.Key]*testPod
	waiting  map[eni.Key]nodecache.PendingADD
	serial   int
	seed     uint64 // of its chances, beside serial
	life     *life
	told     status.Status         // what the agent published last
	why      string                // and what it tells pods without an address
	remade   map[string]string     // MACs that somebody gave to links in the place of theirs
	hidden   map[string]bool       // MACs whose link has not come up yet
	devices  map[string]string     // names of the links, by the ENI's MAC
	api      *testAPI              // nil: there is no cluster
	foreign  map[netip.Addr]string // pods of another plugin: their links
	occupied chan struct{}         // what the kernel announces of those
	syncs    int                   // comparisons of the kernel so far
	broken   map[string]bool       // links that can't be set up
	syncErr  error                 // what the kernel can't be made to hold
	disturb  chan struct{}         // tells the agent that others changed the kernel
	refused  atomic.Int32          // releases for good
	limits   *eni.Limits           // what the cloud tells instead of its own
}

// testPod is a sandbox as the kernel knows it.
type testPod struct {
	owner eni.Owner
	addrs []netip.Addr
	dead  bool
}

// life is one run of the agent's process. After its end none of its effects count.
type life struct {
	killAt int // effects until it is killed, -1 for never
	before bool
	after  string // effects are counted from when a request of this action has returned, "" for the start
	dead   bool
	sent   int           // calls to the cloud
	began  time.Duration // since boot
	agent  *Agent
	wake   chan struct{}
	reload chan agentconf.Config
	cancel context.CancelFunc
	ended  chan struct{}
}

func newWorld(t testing.TB, o sim.Options, subnets ...sim.Subnet) *world {
	w := &world{t: t, account: sim.NewAccount(o), taken: map[netip.Addr]bool{}, count: map[string]int{}, begin: time.Now(), log: slog.New(slog.DiscardHandler)}
	for _, s := range subnets {
		if err := w.account.AddSubnet(s); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func testConfig(name string) agentconf.Config {
	c := agentconf.Default()
	c.Node, c.ModeSet = name, true
	c.Settings = ipam.Settings{Routing: ipam.Map, SNAT: true, MarkMask: ipam.DefaultMarkMask, CoolDown: 30 * time.Second,
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Families: []eni.Family{eni.IPv4}}
	return c
}

func (w *world) addNode(conf agentconf.Config, m sim.NodeSpec) *testNode {
	m.Name = conf.Node
	if _, err := w.account.AddNode(m); err != nil {
		w.t.Fatal(err)
	}
	n := &testNode{w: w, name: conf.Node, phase: time.Duration(len(w.nodes)) * 1009, conf: conf, routed: map[netip.Addr]bool{}, pods: map[eni.Key]*testPod{},
		waiting: map[eni.Key]nodecache.PendingADD{}, hidden: map[string]bool{}, disturb: make(chan struct{}, 1), occupied: make(chan struct{}, 1), cacheErr: nodecache.ErrMissing}
	w.nodes = append(w.nodes, n)
	return n
}

func (w *world) asked(method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[method]++
}

// calls returns how many calls of each method the agents have made.
func (w *world) calls() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.count)
}

func (w *world) now() time.Duration { return time.Since(w.begin) + time.Hour }

// now is the time since the node's boot. No two booted at the same instant: what they do at whole
// seconds has an order.
func (n *testNode) now() time.Duration { return n.w.now() + n.phase }

// start runs a new agent. killAt counts its effects.
func (n *testNode) start(killAt int, before bool) *life {
	return n.startUntil(killAt, before, "")
}

// startUntil is start with effects that are counted from when a request has returned.
func (n *testNode) startUntil(killAt int, before bool, after string) *life {
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{killAt: killAt, before: before, after: after, began: n.w.now(), wake: make(chan struct{}, 1), reload: make(chan agentconf.Config), cancel: cancel, ended: make(chan struct{})}
	n.life = l
	l.agent = n.agent(l, n.w.log.With("node", n.name))
	go func() {
		defer close(l.ended)
		_ = l.agent.Run(ctx) // what goes wrong shows in the world
	}()
	return l
}

func (n *testNode) agent(l *life, log *slog.Logger) *Agent {
	p := process{n, l}
	clock := NewRealClock(n.now, Signals{Wake: l.wake, Occupied: n.occupied, Disturbed: n.disturb, Reload: l.reload})
	parts := Parts{As: n.as, Cache: p, Unusable: nodecache.Unusable, Kernel: p, Cloud: newCloud(p), Stale: p,
		Memory: p, Events: noEvents{}, Log: log, PendingADDs: p.wants, Publish: p.publish, Beat: n.beat,
		MaxPods: func() (int, string) { return 110, "test" }, Writable: n.writable, Clock: clock, Rand: rand.New(rand.NewPCG(uint64(n.serial), 7+n.seed))}
	if n.operator != nil {
		parts.Object, parts.Boot, parts.Kept = &objectOf{op: n.operator, p: p}, n.operator.boot, diskOf{p}
		parts.TopologyPods = func() []eni.TopologyPod {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.ofTopologies
		}
	}
	if n.zone != nil {
		parts.Object, parts.Boot = zoneObject{n.zone, p}, "boot-1"
	}
	if n.api != nil {
		parts.Pods, parts.PodIPs, parts.Report, parts.Warn, parts.Clock = p.clusterPods, p.podIPs, p.report, p.warn, wallClock{clock, p.wall}
	}
	return New(n.conf, parts)
}

// wallClock shows another time of day.
type wallClock struct {
	Clock
	wall func() time.Time
}

func (c wallClock) Wall() time.Time { return c.wall() }

// stop ends the agent as SIGTERM does, kill as SIGKILL does.
func (n *testNode) stop() {
	n.life.cancel()
	<-n.life.ended
}

func (n *testNode) kill() {
	n.mu.Lock()
	n.life.dead = true
	n.mu.Unlock()
	n.stop()
}

// isDead tells whether the agent was killed.
func (n *testNode) isDead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.dead
}

func (n *testNode) wake() {
	select {
	case n.life.wake <- struct{}{}:
	default:
	}
}

type noEvents struct{}

func (noEvents) Call(string, string, time.Duration) {}
func (noEvents) Step(status.Step)                   {}
func (noEvents) Repaired(string, int)               {}
func (noEvents) Compared(string)                    {}
func (noEvents) Error(string)                       {}
func (noEvents) Tick(time.Duration)                 {}
func (noEvents) Observe(status.Status)              {}

// add is an ADD: it takes an address, or waits for one.
func (n *testNode) add() error {
	n.mu.Lock()
	n.serial++
	o := eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprintf("%s-%d", n.name, n.serial), IfName: "eth0"}, Pod: fmt.Sprintf("pod-%d", n.serial), Netns: fmt.Sprintf("/run/netns/%d", n.serial)}
	n.mu.Unlock()
	return n.addOwner(o)
}

func (n *testNode) addOwner(o eni.Owner) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lease ipam.Lease
	err := n.update(func(s *ipam.State) (err error) {
		lease, err = s.AssignPod(o, "", n.w.now())
		return err
	})
	if err != nil {
		if _, announced := n.waiting[o.Key]; !announced {
			n.waiting[o.Key] = nodecache.PendingADD{Owner: o, Since: n.w.now()}
		}
		n.wake()
		return err
	}
	delete(n.waiting, o.Key)
	pod := &testPod{owner: o}
	for _, line := range lease.Addresses {
		pod.addrs = append(pod.addrs, line.Addr)
		if !n.routed[line.Addr] {
			n.w.t.Errorf("%s: %s was handed out and the kernel does not route it", n.name, line.Addr)
		}
	}
	n.pods[o.Key] = pod
	n.wake()
	return nil
}

// retry lets those who wait try again, and returns how many still wait.
func (n *testNode) retry() int {
	n.mu.Lock()
	waiting := slices.SortedFunc(maps.Values(n.waiting), func(a, b nodecache.PendingADD) int { return cmpKey(a.Owner.Key, b.Owner.Key) })
	n.mu.Unlock()
	left := 0
	for _, w := range waiting {
		if n.addOwner(w.Owner) != nil {
			left++
		}
	}
	return left
}

func cmpKey(a, b eni.Key) int {
	if len(a.Container) != len(b.Container) {
		return len(a.Container) - len(b.Container)
	}
	if a.Container < b.Container {
		return -1
	}
	return 1
}

// del is a DEL of some pod.
func (n *testNode) del(k eni.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.update(func(s *ipam.State) error {
		s.Free(k, n.w.now())
		return nil
	})
	if err == nil {
		delete(n.pods, k)
		n.wake()
	}
}

// keys returns the pods in the order of their birth.
func (n *testNode) keys() []eni.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Keys(n.pods), cmpKey)
}

// attached returns the truth about the node.
func (n *testNode) attached() []cloud.Interface { return n.w.account.Snapshot().Nodes[n.name] }

// check returns what must never be: an address of two pods, or of a pod whose
// node does not have it.
func (w *world) check() error {
	if err := w.account.Check(); err != nil {
		return err
	}
	owner := map[netip.Addr]string{}
	snap := w.account.Snapshot()
	for _, n := range w.nodes {
		if err := n.check(snap.Nodes[n.name], owner); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return nil
}

func (n *testNode) check(attached []cloud.Interface, owner map[netip.Addr]string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	has := make(map[netip.Addr]bool, 64)
	for _, nic := range attached {
		for _, a := range nic.Addresses {
			has[a] = true
		}
	}
	for _, pod := range n.pods {
		for _, a := range pod.addrs {
			switch other := owner[a]; {
			case n.w.taken[a]:
			case other != "":
				return fmt.Errorf("address %s has two owners: %s and %s", a, other, pod.owner.Container)
			case !has[a]:
				return fmt.Errorf("address %s of %s is not on its node", a, pod.owner.Container)
			}
			owner[a] = pod.owner.Container
		}
	}
	budget := n.conf.Cloud.CallsBurst + int((n.w.now()-n.life.began).Seconds()*float64(n.conf.Cloud.CallsPerSec))
	if n.life.sent > budget {
		return fmt.Errorf("%d calls in %s, the budget allows %d", n.life.sent, n.w.now()-n.life.began, budget)
	}
	if n.cacheErr != nil {
		return nil
	}
	return errors.Join(n.checkCache(attached), n.cached.Check())
}

// checkCache returns what may be handed out, or is, and is not where the cache has it.
func (n *testNode) checkCache(attached []cloud.Interface) error {
	at, id := map[netip.Addr]string{}, ids(n.cached)
	for _, nic := range attached {
		for _, a := range nic.Addresses {
			if nic.Index >= 0 {
				at[a] = nic.ID
			}
		}
	}
	for _, line := range n.cached.Addresses {
		if line.State != eni.Releasing && line.State != eni.Held && !line.Lost && !n.w.taken[line.Addr] && at[line.Addr] != id[line.ENI] {
			return fmt.Errorf("%s is %s on ENI %s in the cache, and in the cloud on %q", line.Addr, line.State, id[line.ENI], at[line.Addr])
		}
	}
	return nil
}
