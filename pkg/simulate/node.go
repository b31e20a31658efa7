package simulate

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// node is a node without a kernel: its node cache is in memory and its links are
// what the account has attached.
type node struct {
	*play
	name  string
	state *ipam.State // nil before the agent has made it
	seen  bool        // the agent may still read state: it is copied before a change
	agent *agent.Agent
	told  *agent.VirtualClock // tells the agent what happens
	rand  *rand.Rand

	pending []*pod // without an address, in the order of their arrival
	waiting int    // of them: whose ADD got none
	used    int    // addresses that pods have
	target  int
	gaveAt  time.Duration // when it released addresses last
	gave    bool          // it has released some since it last asked for more
	retryAt time.Duration // when those that wait try again because a cooldown ends
}

// newNode makes a node of the account with an agent that has not begun.
func newNode(p *play, m sim.NodeSpec, conf agentconf.Config, seed uint64) (*node, error) {
	if _, err := p.account.AddNode(m); err != nil {
		return nil, err
	}
	n := &node{play: p, name: m.Name, rand: rand.New(rand.NewPCG(seed, 1))}
	conf.Node, conf.ModeSet = m.Name, true
	n.told = agent.NewVirtualClock(agent.VirtualTime{Now: p.sinceBoot, Wall: p.clock.Now, Begin: p.clock.beginCall,
		After: func(d time.Duration, do func()) { p.clock.planAt(p.clock.now+d, do) }})
	n.agent = agent.New(conf, agent.Parts{
		Cache: n, Unusable: nodecache.Unusable, Kernel: n, Cloud: counted{newPriced(p.account, m.Name, p.till), n}, Stale: n, Memory: n, Events: n,
		Log: p.log.With("node", m.Name), PendingADDs: n.pendingADDs, Publish: n.takeStatus,
		MaxPods: func() (int, string) { return p.world.MaxPods, "simulation" },
		Clock:   n.told, Rand: rand.New(rand.NewPCG(seed, 2)),
	})
	return n, nil
}

// startAgent runs the agent from now on.
func (n *node) startAgent() { n.told.Start(n.agent) }

// wakeAgent tells it that the node cache or the pending ADDs have changed.
func (n *node) wakeAgent() { n.told.Tell(agent.Event{Kind: agent.Woken}) }

// View, Update and Replace are the node cache.
func (n *node) View(_ context.Context, fn func(*ipam.State) error) error {
	if n.state == nil {
		return nodecache.ErrMissing
	}
	n.seen = true
	return fn(n.state)
}

func (n *node) Update(_ context.Context, fn func(*ipam.State) error) error {
	if n.state == nil {
		return nodecache.ErrMissing
	}
	next := n.state.Clone()
	if err := fn(next); err != nil {
		return err
	}
	if len(next.Touched()) > 0 {
		n.putState(next)
	}
	return nil
}

func (n *node) Replace(_ context.Context, fn func(*ipam.State, error) (*ipam.State, error)) error {
	var old *ipam.State
	err := nodecache.ErrMissing
	if n.state != nil {
		old, err = n.state.Clone(), nil
	}
	next, err := fn(old, err)
	if err != nil {
		return err
	}
	n.putState(next.Clone())
	return nil
}

// putState is a change of the node cache by the agent. It wakes the agent and the pending ADDs.
func (n *node) putState(next *ipam.State) {
	n.meter.changeNode(n, func() { n.state, n.seen = next, false })
	n.wakeAgent()
	if n.waiting > 0 {
		n.clock.planAt(n.clock.now, n.servePending)
	}
}

// Grow, Sync, Links and Occupancy are the kernel.
func (n *node) Grow(context.Context, *ipam.State) ([]string, error) { return nil, nil }

func (n *node) Sync(context.Context, []string, *ipam.State) ([]string, error) { return nil, nil }

func (n *node) Links(context.Context) (map[string]eni.Interface, error) {
	links := map[string]eni.Interface{}
	for _, nic := range n.account.Attached(n.name) {
		if nic.Index >= 0 {
			links[nic.MAC] = eni.Interface{Device: "eth" + strconv.Itoa(nic.Index), MTU: 9001}
		}
	}
	return links, nil
}

func (n *node) Occupancy(context.Context) (netconf.Occupancy, error) { return netconf.Occupancy{}, nil }

// Reclaim has nothing to do: every sandbox here ends with a DEL.
func (n *node) Reclaim(context.Context, func(eni.Owner) bool) ([]eni.Address, error) { return nil, nil }

// Load and Save: the agent never restarts.
func (n *node) Load() ([]byte, error) { return nil, nil }
func (n *node) Save([]byte) error     { return nil }

func (n *node) pendingADDs(time.Duration) ([]nodecache.PendingADD, error) {
	var list []nodecache.PendingADD
	for _, p := range n.pending {
		list = append(list, nodecache.PendingADD{Owner: p.owner, Since: p.since})
	}
	return list, nil
}

func (n *node) takeStatus(s status.Status, _ string) error {
	n.meter.target += s.Target - n.target
	n.target = s.Target
	return nil
}

// Of the agent's metrics only the outcome of calls counts here.
func (n *node) Call(_, outcome string, _ time.Duration) { n.meter.noteOutcome(outcome) }
func (n *node) Step(status.Step)                        {}
func (n *node) Repaired(string, int)                    {}
func (n *node) Compared(string)                         {}
func (n *node) Error(string)                            {}
func (n *node) Tick(time.Duration)                      {}
func (n *node) Observe(status.Status)                   {}
