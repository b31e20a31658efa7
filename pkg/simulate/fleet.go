package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/quota"
)

// Fleet is nodes of one kind whose pods come at once, and an operator that calls the cloud for them. There may be more nodes than
// agents could be played of: they have no agent and no account, but what the operator decides for each, and the queue and the
// budget that its calls wait for, are the operator's own (packages order and quota). What a call is made of the engine tells.
// Left out are the API server, and subnets that run out.
type Fleet struct {
	Nodes int
	Pods  int  // of each node
	Cold  bool // none has an address for pods yet, and the operator describes all of them first
	Share int  // percent of the account's rates that the operator takes

	Topologies Hosted // what of Pods belongs to topologies
}

// MostFleet is how many nodes a fleet has at most.
const MostFleet = 1_000_000

// Load returns the fleet's pods as a load of that length.
func (f Fleet) Load(kind string, length time.Duration) Load {
	pods := make([]Pod, f.Pods)
	for i := range pods {
		pods[i] = Pod{Start: time.Millisecond, End: length}
	}
	l := Load{Name: kind, Duration: length, AtOnce: true, Cold: f.Cold, Nodes: make([][]Pod, f.Nodes)}
	for i := range l.Nodes {
		l.Nodes[i] = pods
	}
	return l
}

// Length is how long to play so that all that the operator orders for the fleet comes, in whole steps of ten minutes.
func (f Fleet) Length(w World, s Setting) time.Duration {
	o := newOperated(w, f, s, 0)
	served := o.race().servedIn(o.world, o.tolls, nil)
	const step = 10 * time.Minute
	length := time.Duration(served.PlanBound)*5/4 + 2*step
	if f.Topologies.Drained > 0 { // each move is a call or two, and they come at once
		length += time.Duration(f.Topologies.Drained*f.Topologies.Pods)*2*time.Second + step
	}
	return length.Truncate(step)
}

// share returns the world in which the operator has its part of the rates, as it reckons with it.
func (w World) share(percent int) World {
	part := func(b sim.Bucket) sim.Bucket {
		if b.Every <= 0 {
			return b
		}
		return sim.Bucket{Burst: max(1, b.Burst*percent/100), Every: b.Every * 100 / time.Duration(percent)}
	}
	w.Mutating, w.Describing = part(w.Mutating), part(w.Describing)
	all := map[string]sim.Bucket{}
	for action, b := range w.Buckets {
		all[action] = part(b)
	}
	w.Buckets = all
	return w
}

// limit returns what an operator may ask of an action in a world that is its share.
func (w World) limit(action string) quota.Limit {
	b := w.bucketFor(action, w.describing()[action])
	if b.Every <= 0 {
		return quota.Limit{Burst: 1e6, PerSecond: 1e6} // as good as any number
	}
	return quota.Limit{Burst: max(1, b.Burst), PerSecond: float64(time.Second) / float64(b.Every)}
}

// Operate plays how an operator serves a fleet, for at most a time. The world needs a driver, whose requests its rates are of.
// The same arguments give the same Result.
func Operate(ctx context.Context, w World, f Fleet, s Setting, length time.Duration) (Result, error) {
	if err := f.validate(w); err != nil {
		return Result{}, err
	}
	o := newOperated(w, f, s, length)
	if err := o.checkRoom(); err != nil {
		return Result{}, err
	}
	o.begin()
	for end := time.Duration(0); end < length; {
		end = min(end+o.meter.step, length)
		for o.clock.runNext(end) {
			if ctx.Err() != nil {
				return Result{}, context.Cause(ctx)
			}
		}
		o.clock.now = end
		o.meter.closeBin(o.meter.owned - o.meter.used)
	}
	return o.result(s.Name, length), nil
}

func (f Fleet) validate(w World) error {
	switch {
	case w.Driver == nil:
		return fmt.Errorf("fleet: the world needs a cloud, whose rates an operator shares out")
	case f.Nodes < 1 || f.Nodes > MostFleet:
		return fmt.Errorf("nodes: %d: must be 1 to %d", f.Nodes, MostFleet)
	case f.Pods < 1 || f.Pods > w.MaxPods:
		return fmt.Errorf("pods: %d: must be 1 to %d", f.Pods, w.MaxPods)
	case f.Share < 1 || f.Share > 100:
		return fmt.Errorf("share: %d: must be 1 to 100", f.Share)
	}
	return newHosting(f.Topologies, w.Limits).validate(f, w.Limits)
}

// checkRoom finds what would run out: subnets and quotas are not played.
func (o *operated) checkRoom() error {
	addresses, made := 1, o.hosted.enis // of one node, its own ENI's first
	for _, call := range o.plan.calls {
		if addresses += call.slots; call.method == create {
			addresses, made = addresses+1, made+1
		}
	}
	room := 0
	for _, s := range o.world.Subnets {
		room += 1<<(32-s.CIDR.Bits()) - s.Reserved - s.Taken
	}
	addresses += o.warm
	switch n := o.fleet.Nodes; {
	case n*addresses > room:
		return fmt.Errorf("subnet: %d nodes take %d addresses, and the subnets have %d: an operator is simulated where they do not run out", n, n*addresses, room)
	case o.world.MaxENIs > 0 && n*(1+made) > o.world.MaxENIs:
		return fmt.Errorf("eni-quota: %d nodes take %d ENIs: an operator is simulated where they do not run out", n, n*(1+made))
	}
	return nil
}

// race is what has to be done for all pods of the fleet.
func (o *operated) race() *race {
	plan := o.plan
	plan.alike = o.fleet.Nodes - 1
	return &race{left: o.fleet.Nodes*(o.fleet.Pods+o.hosted.Hosted.Pods) - o.meter.used, plans: []nodePlan{plan}}
}

// result is what was played.
func (o *operated) result(name string, length time.Duration) Result {
	left := o.meter.waiting
	for range left {
		o.meter.noteWait(o.clock.now)
	}
	r := o.meter.result(name, length)
	r.Topologies = o.hosted.result(o.clock.now)
	done := map[string]Passed{}
	for action, n := range o.untilServed() {
		done[action] = Passed{Passed: n}
	}
	race := o.race()
	if race.left = left; o.atEnd != nil {
		race.left = 0 // whoever waits was moved later
	}
	r.Share, r.Served = o.fleet.Share, race.servedIn(o.world, o.tolls, done)
	r.Served.Reached = Seconds(cmp.Or(o.servedAt, length))
	return r
}

// firstPlan is what one node of the fleet orders, as a plan for all of its pods.
func (o *operated) firstPlan() (p nodePlan) {
	p.lacks, p.must = o.fleet.Pods-o.warm, o.hosted.calls()
	for _, s := range o.stepsOf(&fleetNode{enis: []fleetENI{{count: o.warm}}}) {
		p.calls = append(p.calls, part{methodOf(s), s.Count})
	}
	return p
}

// warmPool is how many addresses a node has that had no pods for long, on its own ENI.
func (o *operated) warmPool() int {
	if o.fleet.Cold || o.world.Limits.FirstIndex() > 0 {
		return 0
	}
	families := []eni.Family{eni.IPv4}
	most := o.conf.Most(o.world.Limits, families, o.world.MaxPods)
	return min(o.conf.Sizing(o.world.Limits, families).Need(0, 1, most), o.world.Limits.PerENI(eni.IPv4))
}

// nodeName sorts as the number does.
func nodeName(i int) string {
	digits := strconv.Itoa(i)
	return "node-" + "0000000"[len(digits):] + digits
}

// sortedActions are all that a cloud's driver makes, by name.
func (w World) sortedActions() []string {
	set := map[string]bool{}
	var all []string
	for _, list := range w.Driver.Requests {
		for _, action := range list {
			if !set[action] {
				set[action] = true
				all = append(all, action)
			}
		}
	}
	slices.Sort(all)
	return all
}

// pages is how many requests show all ENIs of the fleet.
func (o *operated) pages() int {
	return int(math.Ceil(float64(o.fleet.Nodes) / float64(max(1, o.world.Driver.PageSize))))
}
