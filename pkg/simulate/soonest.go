package simulate

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Soonest is what an operator asks of the cloud for a fleet whose pods come at once, and how long that takes at least: what Operate
// would call needed and planned, and their bounds, without playing it.
type Soonest struct {
	Changes int     `json:"changes"` // the fewest requests that change something and give each pod its address
	After   Seconds `json:"after"`   // when those have passed the operator's share of the rates and all pods have addresses, at the soonest
	By      string  `json:"by"`      // the kind of request that passes last, "" if all calls together take longer

	Planned      int     `json:"planned"`      // requests that change something, with what is kept ready besides
	PlannedAfter Seconds `json:"plannedAfter"` // as After, of those
}

// Soonest reckons that for a fleet in a world. What subnets have left is no matter. Pods of topologies may be none though nodes keep
// places for them. Its errors begin with what is wrong, as those of Operate do.
func (f Fleet) Soonest(w World, s Setting) (Soonest, error) {
	judged := f
	if f.Topologies.Pods == 0 { // places alone leave less for other pods, which is found below
		judged.Topologies = Hosted{}
	}
	if err := judged.validate(w); err != nil {
		return Soonest{}, err
	}
	w.Subnets = []Subnet{{ID: "any", CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), 8), Reserved: 5}}
	o := newOperated(w, f, s, 0)
	// Nothing would be needed of calls that are never enough, and the bound would say that all is there at once.
	if got := o.plan.slots(); got < o.plan.lacks {
		return Soonest{}, fmt.Errorf("pods: %d: a node has addresses for %d of them with these settings", f.Pods, got)
	}
	served := o.race().servedIn(o.world, o.tolls, nil)
	return Soonest{Changes: served.Needed, After: served.Bound, By: served.By, Planned: served.Planned, PlannedAfter: served.PlanBound}, nil
}

// slots is for how many pods the calls of a plan bring addresses.
func (n nodePlan) slots() (sum int) {
	for _, c := range n.calls {
		sum += c.slots
	}
	return sum
}

// UsualLatency returns how long calls take where nobody says otherwise, by method.
func UsualLatency() map[string]sim.Latency {
	describe, change := sim.Latency{Base: 100 * time.Millisecond, Jitter: 100 * time.Millisecond}, sim.Latency{Base: 600 * time.Millisecond, Jitter: 400 * time.Millisecond}
	all := map[string]sim.Latency{
		assign: change, unassign: change,
		create: {Base: 4 * time.Second, Jitter: 3 * time.Second},
		remove: {Base: time.Second, Jitter: time.Second},
	}
	for _, method := range describeMethods {
		all[method] = describe
	}
	return all
}
