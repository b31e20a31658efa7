package simulate

import (
	"context"
	"log/slog"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
)

// Setting is a way to run the agents of all nodes, to be compared with others.
type Setting struct {
	Name   string
	Config agentconf.Config // its paths, name and endpoint are not looked at
}

// Agents start before the load begins, one after the other, and have time until their pools no
// longer change: a cluster's first minutes are not measured, but for a load that is Cold.
const (
	startTime = 5 * time.Minute
	restTime  = 5 * time.Minute
)

// play is a load being played with one setting.
type play struct {
	clock   *clock
	account *sim.Account
	till    *till
	world   World
	meter   *meter
	log     *slog.Logger
	conf    agentconf.Config
	nodes   []*node
	race    *race // nil unless all pods of the load come at once
}

// sinceBoot is the time since boot that nodes have.
func (p *play) sinceBoot() time.Duration { return p.clock.now + startTime + restTime + time.Hour }

// Run plays the load with one setting. done is called from time to time with how
// much has been played; it may be nil. Run fails if the world can't be built, and
// ends early with the cause if ctx ends. The same arguments give the same Result.
func Run(ctx context.Context, w World, l Load, s Setting, done func(time.Duration)) (Result, error) {
	if err := w.check(l); err != nil {
		return Result{}, err
	}
	p, err := newPlay(w, l, s, slog.New(slog.DiscardHandler))
	if err != nil {
		return Result{}, err
	}
	defer p.stopAgents()
	if err := p.playUntil(ctx, 0); err != nil {
		return Result{}, err
	}
	before := p.till.requestCounts() // those of the nodes' start are no part of the load's usage
	for end := time.Duration(0); end < l.Duration; {
		end = min(end+p.meter.step, l.Duration)
		if err := p.playUntil(ctx, end); err != nil {
			return Result{}, err
		}
		p.meter.closeBin(p.countFree())
		if done != nil {
			done(end)
		}
	}
	p.stillWaiting()
	r := p.meter.result(s.Name, l.Duration)
	r.Served = p.raceResult()
	if w.Driver != nil {
		r.Usage = p.usage(before, l.Duration)
	}
	return r, nil
}

// playUntil plays until a time.
func (p *play) playUntil(ctx context.Context, end time.Duration) error {
	for p.clock.runNext(end) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	p.clock.now = end
	return nil
}

// newPlay makes the account, the nodes and their pods.
func newPlay(w World, l Load, s Setting, log *slog.Logger) (*play, error) {
	c := &clock{now: -startTime - restTime}
	m := newMeter(c, l.Duration)
	m.last = c.now
	p := &play{clock: c, world: w, meter: m, log: log, conf: s.Config}
	c.planAt(0, func() { p.beginLoad(l) })
	var err error
	if p.account, err = w.newAccount(c); err != nil {
		return nil, err
	}
	p.till = newTill(w, c)
	// A real cluster has grown over days. In the minutes that it has here it would still be short of
	// requests when the load begins, so that no limit holds before.
	if w.Driver != nil {
		p.till.opens = c.Now().Add(-c.now)
	}
	for k, pods := range l.Nodes {
		n, err := newNode(p, w.instanceOf(k), s.Config, w.Seed+uint64(k)*2)
		if err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
		start := c.now + startTime*time.Duration(k)/time.Duration(len(l.Nodes))
		if l.Cold {
			start = 0
		}
		c.planAt(start, n.startAgent)
		n.planArrivals(pods, 0)
	}
	return p, nil
}

// stopAgents ends all agents and their calls where they are.
func (p *play) stopAgents() {
	p.clock.stopCalls()
	for _, n := range p.nodes {
		n.told.Stop()
	}
}

// beginLoad is when the load begins: what was before does not count. Pods that still
// wait go on waiting.
func (p *play) beginLoad(l Load) {
	p.meter.forgetStart()
	if l.AtOnce {
		p.race = p.newRace(l)
	}
	for _, n := range p.nodes {
		p.meter.pods += n.waiting
	}
}

// raceResult returns how long it took until all pods had an address, nil without a race.
func (p *play) raceResult() *Served {
	if p.race == nil {
		return nil
	}
	if p.race.served == nil {
		p.race.finishRace(p)
	}
	return p.race.served
}

// countFree counts the addresses that could be handed out now.
func (p *play) countFree() int {
	free := 0
	for _, n := range p.nodes {
		if n.state != nil {
			free += n.state.Count(p.sinceBoot(), nil).Free
		}
	}
	return free
}

// stillWaiting counts the waits of the pods that wait when the load ends.
func (p *play) stillWaiting() {
	for _, n := range p.nodes {
		for _, pod := range n.pending {
			if pod.waits {
				p.meter.noteWait(p.clock.now - pod.begin)
			}
		}
	}
}
