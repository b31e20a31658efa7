package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// plan decides how many slots there should be and what to do about it. It changes
// nothing but the sizing's memory.
func (a *Agent) plan(book *ipam.State, now time.Duration) ([]pool.Step, error) {
	waiting, err := a.Wants(now)
	a.demand = count(book, waiting, now)
	a.cooledAt = 0
	if c := book.Count(now, nil); c.Cooling > 0 {
		a.cooledAt = now + c.NextFree
	}
	if !a.view.known {
		return nil, err
	}
	snap := a.snapshot(book, now)
	maxPods, _ := a.MaxPods()
	snap.MaxPods = maxPods
	families := book.Settings.Families
	sizing := a.conf.Pool.Sizing(a.view.limits, families)
	if a.mem.Scale == nil {
		s := scale.New(sizing, a.demand.owned, now)
		a.mem.Scale = &s
	}
	o := scale.Observation{Demand: a.demand.wanted, Assigned: a.demand.assigned, Owned: a.demand.owned, Releasing: a.demand.releasing,
		Primaries: carriers(snap, a.conf.Pool.FirstENI), Most: a.conf.Pool.Most(a.view.limits, families, maxPods),
		Valid: err == nil, Exhausted: a.exhausted(snap, now)}
	next, d := sizing.Decide(*a.mem.Scale, now, o)
	*a.mem.Scale = next
	a.decision = d
	a.status.Most, a.status.Exhausted = o.Most, a.fullSubnets(now)
	a.status.Blockers = nil
	wanted := max(d.Target, a.demand.wanted)
	if there := present(book, snap); wanted == d.Target && pool.Settled(a.conf.Pool, snap, there, wanted) {
		return nil, err
	}
	a.fill(&snap, book, now)
	a.status.Blockers = pool.Blockers(a.conf.Pool, snap, wanted)
	return pool.Plan(a.conf.Pool, snap, d.Target), err
}

// present counts the addresses of each ENI of the snapshot, as pool.Settled has it.
func present(book *ipam.State, s pool.Snapshot) []int {
	there := make([]int, len(s.ENIs))
	for i := range book.Addresses {
		line := &book.Addresses[i]
		at := slices.IndexFunc(s.ENIs, func(e pool.ENI) bool { return e.Index == line.ENI })
		switch {
		case at < 0:
		case line.State == eni.Releasing || line.Lost:
			there[at] = -len(book.Addresses)
		default:
			there[at]++
		}
	}
	return there
}

// carriers is how many ENIs carry pods' addresses, each with a primary of its own.
func carriers(s pool.Snapshot, first int) int {
	n := len(s.Pending)
	for _, e := range s.ENIs {
		if e.Index >= first {
			n++
		}
	}
	return n
}

// quiet is how long a subnet must not have been full for the node to stop sparing
// its addresses: without it the nodes of a cluster would swing together.
const quiet = time.Minute

// exhausted tells whether every subnet that could give the node more was full
// lately.
func (a *Agent) exhausted(s pool.Snapshot, now time.Duration) bool {
	candidates := map[string]bool{}
	for _, n := range s.Subnets {
		if n.New {
			candidates[n.ID] = true
		}
	}
	for _, e := range s.ENIs {
		if e.Index >= a.conf.Pool.FirstENI {
			candidates[e.Subnet] = true
		}
	}
	full := 0
	for id := range candidates {
		if at, ok := a.fullAt[id]; ok && now-at < quiet {
			full++
		}
	}
	return full > 0 && full == len(candidates)
}
