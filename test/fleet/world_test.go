package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

const (
	timeout    = 5 * time.Second
	leaseLasts = 15 * time.Second
)

var forPods = map[string]string{"pods": "yes"}

// world is an account, an API server, nodes with their agents, and two operators.
type world struct {
	t        testing.TB
	seed     uint64
	ctx      context.Context
	began    time.Time
	rng      *rand.Rand // of what happens
	account  *sim.Account
	traits   driver.Traits
	store    *store
	lease    order.Lease
	slots    [2]*slot
	nodes    []*node
	made     int      // nodes so far
	hasty    bool     // it ends with its last step: only what must never be counts
	mishaps  []string // what goes wrong, by name; all if there is none
	diskless bool     // nothing that agents keep outlasts a boot: a rule is switched off
	life     sync.WaitGroup
	backups  []backup
	chances  map[string][]sim.Chance // what goes wrong with the cloud, by mishap

	mu     sync.Mutex
	owners map[netip.Addr]string // pods by address
	wrong  []string
	notes  []string
	low    map[string]*sim.Meter // buckets of a tenth, nil while the account has its own
}

// slot is where one of the operators runs: one process after the other.
type slot struct {
	mu      sync.Mutex
	process *process
	away    chan struct{} // closed when it may start again, nil while it may
}

// newWorld makes a world of so many nodes. Addresses are scarce in it, and are given again at once.
func newWorld(t testing.TB, ctx context.Context, seed uint64, nodes int) *world {
	w := &world{t: t, seed: seed, ctx: ctx, began: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)), traits: sim.LikeEC2(),
		lease: order.Lease{Duration: leaseLasts, Settle: 10 * time.Second, Fence: 6 * time.Minute}, chances: map[string][]sim.Chance{}, owners: map[netip.Addr]string{}}
	w.store = newStore(seed, w.complain)
	w.store.lag = time.Duration(w.rng.IntN(3)) * time.Second
	w.store.past, w.store.cuts, w.store.fails, w.store.conflicts = 30, w.rng.IntN(3), w.rng.IntN(4), w.rng.IntN(4)
	o := sim.Options{Seed: seed, VPC: sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, Reuse: sim.ReuseLatest,
		Lag: time.Duration(w.rng.IntN(4)) * 3 * time.Second, CreateTime: time.Second, AttachTime: 2 * time.Second, DetachTime: 2 * time.Second, Buckets: map[string]sim.Bucket{},
		Latency: map[string]sim.Latency{"": {Base: 50 * time.Millisecond, Jitter: 300 * time.Millisecond}}}
	w.traits.Buckets = map[string]cloud.Bucket{}
	for action, b := range buckets {
		w.traits.Buckets[action] = b
		o.Buckets[action] = sim.Bucket{Burst: b.Burst, Every: time.Duration(float64(time.Second) / b.PerSecond)}
	}
	w.account = sim.NewAccount(o)
	// What pods use fits in, and what burstable nodes fill in the end as well.
	bits := 32
	for size := 1; size < 28*nodes+10; size *= 2 {
		bits--
	}
	w.must(w.account.AddSubnet(sim.Subnet{ID: "subnet-a", V4: netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits), Tags: forPods}))
	w.must(w.account.AddSubnet(sim.Subnet{ID: "subnet-b", V4: netip.PrefixFrom(netip.MustParseAddr("10.1.0.0"), bits+1), Tags: forPods}))
	w.account.AddType(sim.Type{Name: "small", ENIs: 4, V4: 10, V6: 10})
	for range nodes {
		w.addNode()
	}
	return w
}

// buckets are those of EC2, by action.
var buckets = map[string]cloud.Bucket{
	sim.ActAssign: {Burst: 100, PerSecond: 5}, sim.ActUnassign: {Burst: 100, PerSecond: 5}, sim.ActCreate: {Burst: 100, PerSecond: 5},
	sim.ActDelete: {Burst: 100, PerSecond: 5}, sim.ActModify: {Burst: 100, PerSecond: 5}, sim.ActAttach: {Burst: 50, PerSecond: 5}, sim.ActDetach: {Burst: 50, PerSecond: 5},
	sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActSubnets: {Burst: 100, PerSecond: 20}, sim.ActShape: {Burst: 100, PerSecond: 20}, sim.ActAlive: {Burst: 100, PerSecond: 20},
}

// addNode adds an instance with its Node and its agent, which has not begun.
func (w *world) addNode() *node {
	w.made++
	n := &node{w: w, name: fmt.Sprintf("node-%03d", w.made), phase: time.Duration(w.made) * 1009, seed: w.seed + uint64(w.made)<<20}
	n.instance = "i-" + n.name
	w.must(w.addInstance(n.instance))
	c := agentconf.Default()
	c.Node, c.ModeSet, c.Cloud.Provider = n.name, true, agentconf.Operator
	c.Settings = ipam.Settings{Routing: ipam.Map, MarkMask: ipam.DefaultMarkMask, CoolDown: 30 * time.Second, VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Families: []eni.Family{eni.IPv4}}
	c.Pool.Mode = []pool.Mode{pool.Batch, pool.Batch, pool.BestEffort, pool.Burstable}[w.rng.IntN(4)]
	c.Pool.Multiple, c.Pool.ReturnENIs, c.Pool.PreAllocate, c.Pool.MinAllocate = 1, true, 2, 3
	c.Pool.Scale.Batch, c.Pool.Scale.Stable, c.Pool.Scale.Delay, c.Pool.Scale.ReleaseInterval = 4, 20*time.Second, 30*time.Second, 10*time.Second
	n.conf = c
	zone := ""
	w.account.View(0, func(tx *sim.Tx) { zone = tx.Subnets()[0].Zone })
	w.store.mu.Lock()
	w.store.keep("node "+n.name, &operator.Node{Name: n.name, Instance: n.instance, Type: "small", Zone: zone})
	w.store.mu.Unlock()
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	return n
}

// addInstance adds an instance in one of the subnets, most in the first, for which somebody who has filled them makes room.
func (w *world) addInstance(id string) (err error) {
	list := []string{"subnet-a", "subnet-b"}
	if w.rng.IntN(4) == 0 {
		slices.Reverse(list)
	}
	for _, subnet := range list {
		for range 2 {
			if _, err = w.account.AddInstance(sim.Instance{ID: id, Type: "small", Subnet: subnet}); err == nil {
				return nil
			}
			w.must(w.account.LeaveFree(subnet, all))
		}
	}
	return err
}

// allNodes returns the nodes, for others than who adds and removes them.
func (w *world) allNodes() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

// removeNode ends an instance, and with it its Node and what belongs to that.
func (w *world) removeNode(n *node) {
	n.kill()
	n.mu.Lock()
	n.deleted = true
	for _, p := range n.pods {
		w.disown(p.addr)
	}
	n.pods = nil
	n.mu.Unlock()
	w.must(w.account.Terminate(n.instance))
	w.mu.Lock()
	w.nodes = slices.DeleteFunc(slices.Clone(w.nodes), func(m *node) bool { return m == n })
	w.mu.Unlock()
	w.store.mu.Lock()
	w.store.keep("node "+n.name, nil)
	w.store.mu.Unlock()
}

// collect is the API server's collector: objects end whose Node is gone.
func (w *world) collect() {
	for {
		sleep(w.ctx, 20*time.Second)
		if w.ctx.Err() != nil {
			return
		}
		w.store.mu.Lock()
		for _, name := range w.store.names("network") {
			if w.store.objects["node "+name] == nil {
				w.store.endNetwork(name, time.Now())
			}
		}
		w.store.mu.Unlock()
	}
}

// begin starts all of it.
func (w *world) begin() {
	for i := range w.slots {
		s := &slot{}
		w.slots[i] = s
		w.life.Go(func() { w.runSlot(s, i) })
	}
	for _, n := range w.nodes {
		n.start(-1, false)
	}
	w.life.Go(w.collect)
	w.life.Go(func() {
		for w.ctx.Err() == nil {
			for _, n := range w.allNodes() {
				n.tryAgain()
			}
			w.check()
			sleep(w.ctx, time.Duration(1+len(w.allNodes())/50)*2*time.Second)
		}
	})
}

// runSlot runs one process of an operator after the other.
func (w *world) runSlot(s *slot, i int) {
	for run := 1; w.ctx.Err() == nil; run++ {
		s.mu.Lock()
		away := s.away
		s.mu.Unlock()
		if away != nil {
			select {
			case <-away:
			case <-w.ctx.Done():
			}
			continue
		}
		p := w.startOperator(w.ctx, fmt.Sprintf("operator-%d-%d", i, run))
		s.mu.Lock()
		s.process = p
		s.mu.Unlock()
		select {
		case <-p.ended:
		case <-p.killed:
			w.life.Go(func() { <-p.ended })
		}
		sleep(w.ctx, 5*time.Second)
	}
	s.current().kill()
}

func (s *slot) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// goAway ends the processes of a slot for a while, by a signal or at once.
func (s *slot) goAway(d time.Duration, kill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away == nil {
		away := make(chan struct{})
		s.away = away
		time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.away = nil
			close(away)
		})
	}
	if p := s.process; kill {
		go p.kill()
	} else {
		p.cancel()
	}
}

// leader returns the process that has the lease, or one of both.
func (w *world) leader() *process {
	w.store.mu.Lock()
	holder := ""
	if l := w.store.lease; l != nil && l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	w.store.mu.Unlock()
	for _, s := range w.slots {
		if p := s.current(); p.name == holder {
			return p
		}
	}
	return w.slots[w.rng.IntN(len(w.slots))].current()
}

func (w *world) must(err error) {
	if err != nil {
		panic(err) // a test that ends leaves goroutines behind, which would be all that is told
	}
}

func (w *world) since() time.Duration { return time.Since(w.began) }

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf("%9.3fs ", w.since().Seconds())+fmt.Sprintf(format, args...))
	w.notes = w.notes[max(0, len(w.notes)-60):]
}

// traced tells of something where all is told.
func (w *world) traced(format string, args ...any) {
	if *trace {
		fmt.Fprintf(w.t.Output(), "at=%s %s\n", w.since(), fmt.Sprintf(format, args...))
	}
}

// complain notes what must never be.
func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf("%9.3fs ", w.since().Seconds())+fmt.Sprintf(format, args...))
}

// isWrong tells whether something was that must never be.
func (w *world) isWrong() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wrong) > 0
}

func (w *world) logOf(name string) *slog.Logger {
	if !*trace {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.String("at", w.since().String())
		}
		return a
	}})).With("node", name)
}

// refuse sets what goes wrong with the cloud besides all else, nothing for an end of that.
func (w *world) refuse(mishap string, chances ...sim.Chance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chances[mishap] = chances; len(chances) == 0 {
		delete(w.chances, mishap)
	}
	var all []sim.Chance
	for _, c := range w.chances {
		all = append(all, c...)
	}
	w.account.SetFaults(all...)
}

// throttle returns for how long a request is refused while the account has a tenth of its rates.
func (w *world) throttle(action string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.low[action]; m != nil {
		return m.Take(time.Now())
	}
	return 0
}

func (w *world) setLow(low bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.low = nil; !low {
		return
	}
	w.low = map[string]*sim.Meter{}
	for action, b := range buckets {
		w.low[action] = &sim.Meter{Bucket: sim.Bucket{Burst: b.Burst / 10, Every: time.Duration(10 * float64(time.Second) / b.PerSecond)}}
	}
}
