package agent

import (
	"math"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// all is how many slots of a subnet a node keeps that has given up none.
const all = math.MaxInt

// holding is what the node has in a subnet, in slots.
type holding struct {
	there, idle int
	moves       bool // some are on their way from or to the subnet: how many there are is not known
}

// holdings returns what the node has in each subnet that is scarce, of the ENIs that carry pods.
func (a *Agent) holdings(cached *ipam.State, s pool.Snapshot, now time.Duration) map[string]holding {
	if !a.anyScarce() {
		return nil // nearly always
	}
	have := map[string]holding{}
	for _, p := range s.Pending {
		h := have[p.Subnet]
		h.moves = true
		have[p.Subnet] = h
	}
	for i := range s.ENIs {
		if e := &s.ENIs[i]; e.Index >= a.firstIndex() {
			there, idle, going := slotsOf(cached, e.Index, now)
			h := have[e.Subnet]
			have[e.Subnet] = holding{h.there + there, h.idle + idle, h.moves || going || len(e.Coming) > 0}
		}
	}
	return have
}

// slotsOf returns how many slots the ENI has, how many of them no pod needs, and whether some are on their way back.
func slotsOf(cached *ipam.State, index int, now time.Duration) (there, idle int, going bool) {
	there, idle = math.MaxInt, math.MaxInt
	for _, f := range cached.Settings.Families {
		has, rests := 0, 0
		for i := range cached.Addresses {
			line := &cached.Addresses[i]
			switch {
			case line.ENI != index || line.Family() != f:
			case line.State == eni.Releasing:
				going = true
			case line.State == eni.Held || line.IsKept() || line.Lost:
			case line.State == eni.Used || line.State == eni.Reserved || cached.IsCooling(line, now):
				has++
			default:
				has++
				rests++
			}
		}
		there, idle = min(there, has), min(idle, rests)
	}
	return there, idle, going
}

// leaveToOthers notes in the snapshot which subnets are spared where others have room: there it gets only what its pods need,
// and what it has there beyond that goes step by step, as where all are full, while the plan brings as much elsewhere.
func (a *Agent) leaveToOthers(s *pool.Snapshot, have map[string]holding, sizing scale.Config, now time.Duration) {
	sure := !a.demand.partial && time.Duration(a.mem.Scale.ValidSeconds)*time.Second >= sizing.Stable
	surplus := a.demand.owned
	for i := range s.Subnets {
		n := &s.Subnets[i]
		c, h := a.scarce[n.ID], have[n.ID]
		if c == nil || !c.full || a.exhausted {
			if c != nil {
				c.keeps = all
			}
			continue
		}
		c.keeps = min(c.keeps, h.there)
		n.Spared, n.Keep = true, h.there
		if !sure {
			continue
		}
		// One step at a time: while slots of the one before are still there the node would release them twice.
		need := max(a.demand.total, a.mem.Scale.Peak(heed(sizing, c.refused))) + sizing.ExhaustedSpare
		if spare := min(h.idle, surplus-need); !h.moves && c.keeps == h.there {
			c.keeps -= a.slotsToYield(c, spare, h.there, now)
		}
		n.Keep = c.keeps
		surplus -= h.there - n.Keep
	}
}

// slotsToYield returns how many of the spare slots the node releases now in a subnet where it has that many slots.
func (a *Agent) slotsToYield(c *scarcity, spare, there int, now time.Duration) int {
	if spare <= 0 {
		return 0
	}
	if a.view.inBlocks() { // what describes show tells little of blocks
		if c.refused {
			return spare
		}
		return 0
	}
	given := there - keepAfter([]*scarcity{c}, there, there, there-spare)
	if given > 0 {
		c.offer = offer{last: given, at: now + a.conf.Settle}
	}
	return given
}

// heed is for how long the most that pods needed counts as their need where others may wait: for less where the node was refused
// some itself, so that others may be, too.
func heed(sizing scale.Config, refused bool) time.Duration {
	d := min(sizing.Delay, longestHeed)
	if refused {
		d = min(d, sizing.ExhaustedDelay)
	}
	return d
}

// hasSpareInEmpty tells whether the node has more than its pods need in a subnet that was seen without addresses.
func (a *Agent) hasSpareInEmpty(have map[string]holding) bool {
	if a.demand.owned <= a.demand.total+a.conf.Pool.Scale.ExhaustedSpare {
		return false
	}
	if a.conf.Pool.Mode == pool.Burstable {
		return false // whole ENIs go, or nothing
	}
	for id, c := range a.scarce {
		if a.view.inBlocks() && !c.refused {
			continue
		}
		if c.empty > 0 && have[id].idle > 0 {
			return true
		}
	}
	return false
}
