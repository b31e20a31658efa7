package explore

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
)

const (
	instance = "i-1"
	addrs    = 2 // secondary addresses of an ENI
	enis     = 2 // of the instance
)

// scenario is a cloud, and what is broken by hand in the layers over it.
type scenario struct {
	name   string
	traits driver.Traits
	slow   time.Duration // that attach and detach take

	only func(choice string) bool // where things may go wrong, nil for everywhere

	wrapDriver func(*world, driver.Driver) driver.Driver
	wrapCloud  func(*world, cloud.Cloud) cloud.Cloud
	wrapStore  func(agent.Store) agent.Store
	settle     time.Duration // that the agent is told, 0 for the default

	fields map[reflect.Type][]field // what of each struct the digest takes, kept over all runs
}

// world is one instance of a simulated account with an agent that can be killed.
type world struct {
	node
	scenario
	clock    clock
	truth    *sim.Driver
	versions []version // of the account, the newest last
	life     *life
	choices  *choices
	rand     counter
	asked    int           // tokens of calls that are made once
	told     status.Status // what the agent published last
	log      *slog.Logger
}

// killed is the panic that ends an agent in the middle of whatever it does.
type killed struct{}

// failure is the panic that ends a run with what must not be.
type failure struct{ error }

func (w *world) fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func newWorld(s scenario, c *choices) *world {
	w := &world{scenario: s, choices: c, node: node{routed: map[netip.Addr]bool{}}, log: slog.New(slog.DiscardHandler)}
	account := sim.NewAccount(sim.Options{Clock: &w.clock, Reuse: sim.ReuseLatest, AttachTime: s.slow, DetachTime: s.slow,
		VPC: sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}})
	if err := account.AddSubnet(sim.Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/24")}); err != nil {
		panic(err)
	}
	account.AddType(sim.Type{Name: "tiny", ENIs: enis, V4: 1 + addrs})
	if _, err := account.AddInstance(sim.Instance{ID: instance, Type: "tiny", Subnet: "a"}); err != nil {
		panic(err)
	}
	w.truth = account.Driver(instance, s.traits)
	w.remember()
	w.start()
	return w
}

func config() agentconf.Config {
	c := agentconf.Default()
	c.Node, c.ModeSet = instance, true
	c.Settings = ipam.Settings{Routing: ipam.Map, SNAT: true, MarkMask: ipam.DefaultMarkMask, CoolDown: 30 * time.Second,
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Families: []eni.Family{eni.IPv4}}
	c.Pool.Mode, c.Pool.MinAllocate, c.Pool.PreAllocate, c.Pool.ReturnENIs = pool.BestEffort, 1, 1, true
	c.Pool.Scale.Stable, c.Pool.Scale.Delay, c.Pool.Scale.ReleaseInterval = 10*time.Second, 15*time.Second, 5*time.Second
	c.Cloud.CallsPerSec, c.Cloud.CallsBurst = 1000, 1000 // back-off is the engine's and the agent's, the budget no part of this
	c.Resync, c.LeakAge = 5*time.Minute, time.Minute
	return c
}

func (w *world) sinceBoot() time.Duration { return time.Hour + w.clock.now }

// life is one run of the agent's process.
type life struct {
	w      *world
	agent  *agent.Agent
	engine *engine.Node
	clock  *agent.VirtualClock
}

// start starts an agent with its engine. All they have is what the last one left.
func (w *world) start() {
	l := &life{w: w, clock: agent.NewVirtualClock(agent.VirtualTime{Now: w.sinceBoot, Wall: w.clock.Now, Begin: w.clock.begin,
		After: func(d time.Duration, do func()) { w.clock.at(w.clock.now+d, do) }})}
	w.life = l
	w.clock.at(w.clock.now, func() {
		w.guard(func() {
			var d driver.Driver = halves{w.truth, w}
			if w.wrapDriver != nil {
				d = w.wrapDriver(w, d)
			}
			l.engine = engine.New(d, engine.Options{Clock: &w.clock, Log: w.log, Random: func(time.Duration) time.Duration { return 0 },
				Token: func() string { w.asked++; return fmt.Sprint("call-", w.asked) }})
			var c cloud.Cloud = maker{l.engine, w}
			if w.wrapCloud != nil {
				c = w.wrapCloud(w, c)
			}
			l.agent = w.newAgent(l, c)
			l.clock.Start(l.agent)
		})
	})
}

func (w *world) newAgent(l *life, c cloud.Cloud) *agent.Agent {
	var store agent.Store = w
	if w.wrapStore != nil {
		store = w.wrapStore(store)
	}
	conf := config()
	if w.settle > 0 {
		conf.Settle = w.settle
	}
	return agent.New(conf, agent.Parts{Cache: w, Unusable: nodecache.Unusable, Kernel: w, Cloud: c, Stale: w, Memory: store,
		Events: noEvents{}, Log: w.log, PendingADDs: w.wants, Publish: func(s status.Status, _ string) error { w.told = s; return nil },
		MaxPods: func() (int, string) { return 110, "test" }, Clock: l.clock, Rand: rand.New(&w.rand)})
}

// guard runs a part of the agent's process, and starts another where it was killed.
func (w *world) guard(part func()) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case killed:
			w.kill()
		default:
			panic(p)
		}
	}()
	part()
}

// end ends the run with all that is under way in it.
func (w *world) end() {
	if w.life != nil {
		w.life.clock.Stop()
	}
	w.clock.breakOff()
}

// kill ends the process. The next one begins a second later.
func (w *world) kill() {
	w.life.clock.Stop()
	w.life = nil
	w.clock.current = nil
	w.clock.breakOff()
	w.clock.at(w.clock.now+time.Second, w.start)
}

// wake tells that the node cache or those who wait have changed, of which the agent hears after what
// it, or a call of its, is doing now.
func (l *life) wake() {
	woken := agent.Event{Kind: agent.Woken}
	switch {
	case l == nil || l.agent == nil:
	case l.clock.IsBusy():
		l.clock.Tell(woken)
	default:
		l.w.clock.at(l.w.clock.now, func() { l.clock.Tell(woken) })
	}
}

// counter is chance without any: jitter is none, tokens differ.
type counter uint64

// Uint64 returns numbers that all make 0.5 of a Float64 and 0 of an IntN.
func (c *counter) Uint64() uint64 {
	*c++
	return 1<<52 | uint64(*c)
}
