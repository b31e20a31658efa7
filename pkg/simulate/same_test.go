package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/google/go-cmp/cmp"
)

// steps is a log that keeps what an agent does, with the time of its own clock.
type steps struct {
	mu    sync.Mutex
	now   func() time.Duration
	lines []step
}

// step is a line of the log. Two are the same if they are less than a millisecond
// apart.
type step struct {
	at   time.Duration
	what string
}

func (s step) Equal(other step) bool {
	return s.what == other.what && (s.at-other.at).Abs() < time.Millisecond
}

func (s *steps) Enabled(context.Context, slog.Level) bool { return true }
func (s *steps) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *steps) WithGroup(string) slog.Handler            { return s }
func (s *steps) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	s.add(b.String())
	return nil
}

func (s *steps) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, step{s.now(), what})
}

// realNode is a node whose agent runs as its process runs it, on a node cache in a
// file; time is the test's bubble.
type realNode struct {
	t       *testing.T
	cache   nodecache.Cache
	account *sim.Account
	name    string
	begin   time.Time
	wake    chan struct{}

	occupied, disturbed chan struct{}
	reload              chan agentconf.Config

	mu      sync.Mutex
	waiting []nodecache.PendingADD
	changed chan struct{} // closed when the agent changes the node state
}

func (r *realNode) now() time.Duration { return time.Since(r.begin) + time.Hour }

// View, Update and Replace are the file, and the watches on it.
func (r *realNode) View(ctx context.Context, fn func(*ipam.State) error) error {
	return r.cache.View(ctx, fn)
}

func (r *realNode) Update(ctx context.Context, fn func(*ipam.State) error) error {
	touched := false
	err := r.cache.Update(ctx, func(s *ipam.State) error {
		err := fn(s)
		touched = len(s.Touched()) > 0
		return err
	})
	if touched {
		r.tell()
	}
	return err
}

func (r *realNode) Replace(ctx context.Context, fn func(*ipam.State, error) (*ipam.State, error)) error {
	err := r.cache.Replace(ctx, fn)
	r.tell()
	return err
}

func (r *realNode) tell() {
	r.mu.Lock()
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	r.call()
}

func (r *realNode) call() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *realNode) Grow(context.Context, *ipam.State) ([]string, error) { return nil, nil }
func (r *realNode) Sync(context.Context, []string, *ipam.State) ([]string, error) {
	return nil, nil
}
func (r *realNode) Links(context.Context) (map[string]eni.Interface, error) {
	links := map[string]eni.Interface{}
	for _, nic := range r.account.Snapshot().Nodes[r.name] {
		if nic.Index >= 0 {
			links[nic.MAC] = eni.Interface{Device: fmt.Sprintf("eth%d", nic.Index), MTU: 9001}
		}
	}
	return links, nil
}
func (r *realNode) Occupancy(context.Context) (netconf.Occupancy, error) {
	return netconf.Occupancy{}, nil
}
func (r *realNode) Reclaim(context.Context, func(eni.Owner) bool) ([]eni.Address, error) {
	return nil, nil
}

func (r *realNode) wants(time.Duration) ([]nodecache.PendingADD, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]nodecache.PendingADD(nil), r.waiting...), nil
}

// Call and the others are metrics.
func (r *realNode) Call(string, string, time.Duration) {}
func (r *realNode) Step(status.Step)                   {}
func (r *realNode) Repaired(string, int)               {}
func (r *realNode) Compared(string)                    {}
func (r *realNode) Error(string)                       {}
func (r *realNode) Tick(time.Duration)                 {}
func (r *realNode) Observe(status.Status)              {}

// live is a pod: its ADD, which waits for an address as the plugin does, and its DEL.
func (r *realNode) live(k int, p Pod) (waited time.Duration) {
	owner := eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprint(k), IfName: "eth0"}, Netns: "/run/netns/pod"}
	began := time.Now()
	announced := false
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		var none *ipam.Exhausted
		err := r.cache.Update(context.Background(), func(s *ipam.State) error {
			_, err := s.AssignPod(owner, "", r.now())
			return err
		})
		if err == nil {
			break
		}
		if !errors.As(err, &none) {
			r.t.Error(err)
			return 0
		}
		if !announced {
			announced = true
			r.mu.Lock()
			r.waiting = append(r.waiting, nodecache.PendingADD{Owner: owner, Since: r.now()})
			r.mu.Unlock()
			r.call()
		}
		var cooled <-chan time.Time
		if none.Cooling > 0 {
			cooled = time.After(none.NextFree + time.Millisecond)
		}
		select {
		case <-changed:
		case <-cooled:
		}
		// Of those that wake together nobody knows who is first; here it is the
		// one that waits the longest.
		time.Sleep(time.Duration(k+1) * time.Nanosecond)
	}
	waited = time.Since(began)
	r.mu.Lock()
	for i := range r.waiting {
		if r.waiting[i].Owner.Key == owner.Key {
			r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
	r.call()
	time.Sleep(p.End - p.Start - waited)
	err := r.cache.Update(context.Background(), func(s *ipam.State) error {
		s.Free(owner.Key, r.now())
		return nil
	})
	if err != nil {
		r.t.Error(err)
	}
	r.call()
	return waited
}

// runReal plays the load on a real agent, to which what the script has happens besides. prepare, if not
// nil, makes the agent tell more.
func runReal(t *testing.T, w World, l Load, s Setting, script []happening, prepare func(*agent.Agent, *steps)) (lines []step, waited []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		const before = startTime + restTime
		begin := time.Now()
		log := &steps{now: func() time.Duration { return time.Since(begin) - before }}
		account, err := w.newAccount(nil)
		if err != nil {
			t.Fatal(err)
		}
		conf := s.Config
		conf.Node, conf.ModeSet = w.instanceOf(0).Name, true
		conf.Cache, conf.State = filepath.Join(t.TempDir(), "node.cache"), filepath.Join(t.TempDir(), "agent.json")
		if _, err := account.AddNode(w.instanceOf(0)); err != nil {
			t.Fatal(err)
		}
		client := newPriced(account, conf.Node, newTill(w, account.Clock()))
		r := &realNode{t: t, cache: nodecache.Cache{Path: conf.Cache}, account: account, name: conf.Node, begin: begin,
			wake: make(chan struct{}, 1), changed: make(chan struct{}),
			occupied: make(chan struct{}, 1), disturbed: make(chan struct{}, 1), reload: make(chan agentconf.Config)}
		a := agent.New(conf, agent.Parts{Cache: r, Unusable: nodecache.Unusable, Kernel: r, Cloud: client, Stale: r,
			Memory: agent.File{Path: conf.State}, Events: r, Log: slog.New(log), PendingADDs: r.wants,
			Publish: func(status.Status, string) error { return nil },
			MaxPods: func() (int, string) { return w.MaxPods, "test" }, Rand: rand.New(rand.NewPCG(w.Seed, 2)),
			Clock: agent.NewRealClock(r.now, agent.Signals{Wake: r.wake, Occupied: r.occupied, Disturbed: r.disturbed, Reload: r.reload})})
		if prepare != nil {
			prepare(a, log)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		waits := make([]time.Duration, len(l.Nodes[0]))
		var pods sync.WaitGroup
		for k, p := range l.Nodes[0] {
			pods.Go(func() {
				time.Sleep(before + p.Start)
				waits[k] = r.live(k, p)
			})
		}
		go r.play(script, before)
		time.Sleep(before + l.Duration)
		log.mu.Lock()
		lines = slices.Clone(log.lines)
		log.mu.Unlock()
		pods.Wait()
		stop()
		<-ended
		waited = waits
	})
	return lines, waited
}

// theLoad has a burst, a wave and a quiet time, at moments of their own: what happens
// at the very same time has no order in a real node.
func theLoad() Load {
	r := rand.New(rand.NewPCG(4, 4))
	var pods []Pod
	at := time.Second
	add := func(n int, apart, life time.Duration) {
		for range n {
			at += time.Duration(1 + r.Int64N(int64(apart)))
			pods = append(pods, Pod{at, at + life + time.Duration(r.Int64N(int64(life)))})
		}
	}
	add(6, time.Second, time.Hour)
	at += 4 * time.Minute
	add(30, 10*time.Millisecond, 3*time.Minute)
	at += 20 * time.Minute
	add(20, 20*time.Second, 5*time.Minute)
	at += 15 * time.Minute
	add(12, 2*time.Second, 10*time.Minute)
	return Load{Name: "test", Duration: 2 * time.Hour, Nodes: [][]Pod{pods}}
}

func testWorld() World {
	ms := func(n int) sim.Latency { return sim.Latency{Base: time.Duration(n) * time.Millisecond} }
	return World{
		Limits: eni.Limits{ENIs: 4, V4: 15}, MaxPods: 50, Subnets: []Subnet{{ID: "pods", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Reserved: 5}},
		Latency: map[string]sim.Latency{"": ms(130), "AssignAddresses": ms(710), "UnassignAddresses": ms(930), "CreateInterface": ms(4170), "DeleteInterface": ms(1390)}, Wait: time.Hour, Seed: 7,
	}
}

func TestASimulatedNodeAndARealAgentTakeTheSameSteps(t *testing.T) {
	for name, change := range map[string]func(*agentconf.Config){
		"batch":      func(*agentconf.Config) {},
		"reactive":   func(c *agentconf.Config) { c.Pool.Scale.Strategy = 1 },
		"kpa":        func(c *agentconf.Config) { c.Pool.Scale.Strategy = 2 },
		"burstable":  func(c *agentconf.Config) { c.Pool.Mode, c.Pool.ReturnENIs = 1, true },
		"besteffort": func(c *agentconf.Config) { c.Pool.Mode, c.Pool.PreAllocate, c.Pool.MaxAboveWatermark = 2, 4, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			s := Setting{Name: name, Config: agentconf.Default()}
			change(&s.Config)
			s.Config.Cloud.Concurrent = 1 // of calls that begin together nobody knows which is first
			s.Config.Settings.VPC = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
			w, l := testWorld(), theLoad()
			want, waited := runReal(t, w, l, s, nil, nil)

			log := &steps{}
			p, err := newPlay(w, l, s, slog.New(log))
			if err != nil {
				t.Fatal(err)
			}
			defer p.stopAgents()
			log.now = func() time.Duration { return p.clock.now }
			for p.clock.runNext(l.Duration) {
			}
			if diff := cmp.Diff(want, log.lines); diff != "" {
				t.Errorf("the real agent (-) and the simulated one (+) differ:\n%s", diff)
			}
			if len(want) < 20 {
				t.Errorf("only %d steps: the load is too dull", len(want))
			}
			most := time.Duration(0)
			for _, d := range waited {
				most = max(most, d)
			}
			if got := p.meter.result(name, l.Duration).Waits.Max; (time.Duration(got) - most).Abs() > time.Millisecond {
				t.Errorf("longest wait: %s on the real node, %s in the simulation", most, got)
			}
		})
	}
}
