package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// outlook is what the last plan was made from, and what it found.
type outlook struct {
	demand       demand
	waiting      []nodecache.PendingADD // that have no address
	decision     scale.Decision
	planned      bool           // this tick could make a plan: the cache can be used
	sized        bool           // the limits of the instance were known to a plan
	exhausted    bool           // no subnet of the node has more: it releases what it can spare
	causes       []pool.Cause   // why the node can't have one more address, ranked
	targetCauses []pool.Cause   // why the target is out of reach, ranked
	served       int            // addresses that pods had, or that cooled down after one, when the last tick looked
	known        podSet         // filled anew for each demand
	elsewhere    since[eni.Pod] // pods that show an address which none of ours can be
}

// planSteps decides how many slots there should be and what to do about it. It changes
// nothing but the sizing's memory.
func (a *Agent) planSteps(cached *ipam.State, now time.Duration) (steps []pool.Step, err error) {
	h, err := a.listen(now)
	a.demand, a.waiting = demandOf(cached, h, a.firstIndex(), now, a.known)
	a.planned, a.cooledAt = true, 0
	if c := cached.Count(now, nil); c.Cooling > 0 {
		a.cooledAt = now + c.NextFree
	}
	if at := cached.CooledAt(now); at > 0 && (a.cooledAt == 0 || at < a.cooledAt) {
		a.cooledAt = at
	}
	if !a.view.known {
		return nil, err
	}
	k := a.situation(now)
	snap := k.snapshot(cached)
	snap.MaxPods, _ = a.MaxPods()
	a.size(snap, now)
	snap.Cooling = max(0, max(a.decision.Most, a.decision.Target)-a.status.Most)
	if a.demand.total > a.demand.owned {
		a.pressure = a.pressure.lacking(now)
	}
	have := a.holdings(cached, snap, now)
	a.leaveToOthers(&snap, have, a.conf.Pool.Sizing(snap.Limits, snap.Families), now)
	a.lookEagerly(snap, have, now)
	there := present(cached, snap)
	k.exhausted, k.pressed = a.exhausted, a.pressed(now)
	steps, a.targetCauses = k.steps(cached, snap, there, a.demand.total, a.decision.Target)
	if a.view.operated && len(a.targetCauses) > 0 { // the plan knows nothing of subnets there
		a.targetCauses = slices.Clone(a.view.told)
	}
	a.targetCauses = pool.Rank(a.targetCauses)
	a.causes = a.reasons(now).slotCauses(snap, there)
	return steps, err
}

// size decides how many slots there should be.
func (a *Agent) size(snap pool.Snapshot, now time.Duration) {
	sizing := a.conf.Pool.Sizing(snap.Limits, snap.Families)
	switch {
	case a.mem.Scale == nil:
		s := scale.New(sizing, a.demand.owned, now)
		a.mem.Scale = &s
	case !a.sized: // an earlier agent's
		*a.mem.Scale = a.mem.Scale.Resume(sizing, a.demand.owned, now)
	}
	o := a.demand.observation(a.conf.Pool.Most(snap.Limits, snap.Families, snap.MaxPods), a.conf.Pool.Most(snap.Limits, snap.Families, 0))
	o.Primaries = carriers(snap, a.firstIndex())
	a.supply.spare(&o, sizing, snap, now)
	before := a.mem.Scale.Target
	*a.mem.Scale, a.decision = sizing.Decide(*a.mem.Scale, now, o)
	// The next agent takes the demand that is written down for that of all the time since. One that
	// is too high holds addresses for a while, one that is too low forgets a peak.
	a.unsaved = a.unsaved || a.mem.Scale.Demand > a.savedFor
	if given := min(before, o.Owned) - a.decision.Target; o.Exhausted && given > 0 {
		a.noteOffer(given, now)
	}
	if a.demand.partial {
		// An agent that was killed may remember a smaller pool than there is.
		a.decision.Target = max(a.decision.Target, min(a.demand.owned, a.decision.Most))
		a.mem.Scale.Target = a.decision.Target
	}
	a.sized, a.exhausted = true, o.Exhausted
	a.status.Most, a.status.Exhausted = o.Most, a.fullSubnets(now)
}

// observation is the demand as the sizing wants it. Where the pods are not known no
// address goes back; those that wait are known all the same, and get theirs.
func (d demand) observation(most, room int) scale.Observation {
	o := scale.Observation{Demand: d.total, Assigned: d.assigned, Owned: d.owned, Releasing: d.releasing, Cooling: d.assigned - d.used,
		Most: most, Room: room, Valid: !d.partial}
	if d.partial {
		o.Assigned = max(d.assigned, min(d.total, most+o.Cooling, room))
	}
	return o
}

// present counts the addresses of each ENI of the snapshot, as pool.Settled has it.
func present(cached *ipam.State, s pool.Snapshot) []int {
	there := make([]int, len(s.ENIs))
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		at := slices.IndexFunc(s.ENIs, func(e pool.ENI) bool { return e.Index == line.ENI })
		switch {
		case at < 0:
		case line.State == eni.Releasing || line.Lost:
			there[at] = -len(cached.Addresses)
		case line.State == eni.Held || line.IsKept():
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
