package scale

import "time"

// Observation is what is known about a pool now. All numbers are addresses; one
// below 0 is taken as 0.
type Observation struct {
	Demand    int  // what the pods of the node need, with what is cooling after a pod
	Assigned  int  // what pods have according to the node state
	Owned     int  // what the pool has: assigned, free, cooling and releasing ones
	Releasing int  // of Owned: those that are leaving; only Reactive asks
	Primaries int  // primary addresses of the pool's ENIs
	Most      int  // secondary addresses that the node can hold while none cools down
	Room      int  // those that it can hold with what cools down; below Most it is Most
	Cooling   int  // of Demand: those that cool down after a pod
	Valid     bool // Demand is known; if not, the last one holds
	Exhausted bool // the subnet has no more: others need every address
	Keep      int  // if Exhausted: what the pool keeps of its last target for now
}

// Decision is how large a pool should be, and why.
type Decision struct {
	Target   int // addresses the pool should have
	Need     int // what the pods of now need
	Smoothed int // what they needed lately, at least Need: where Target goes when nothing holds it
	Reason   Reason
	Burst    bool // the demand bursts or did lately: nothing is released
	Most     int  // addresses that the node can hold, with those that cooled down lately

	// Again is when, as a time since boot like the now of Decide, the decision can
	// change first if nothing new is observed until then: maybe a little early, never
	// late. 0: it can't. The reasons Up and Release are of one call and gone in the next.
	Again time.Duration
}

// Decide takes an observation at a time since boot and returns the next state with
// the decision that follows from it. It may be called at any time: the same call again changes
// nothing, between two calls the last demand holds, and an earlier time than that of the last
// call is taken as that one. Calling it at each change and at Again gives what calling it every
// second gives.
//
// With the strategy Equation the pool grows at once to what its pods need. It
// shrinks to the most that they needed within Delay, or in the mean of Stable if
// that is more: once a ReleaseInterval, by whole batches, at most by ShrinkPercent.
// Most bounds the addresses that pods can use. No pod can use one that cools down: so the pool may
// have, beyond Most and up to Room, as many as cooled down at once within Delay.
// It does not shrink while the demand bursts or can't be read, nor before it was
// readable for Stable; and where the subnet is exhausted it shrinks at once to
// what the pods of the last ExhaustedDelay need and ExhaustedSpare, or to Keep. It is
// never smaller than Assigned.
//
// With Reactive a call grows or shrinks the pool by at most one batch, so it is
// called once a second. With KPA it goes by means; see followMean.
func (c Config) Decide(s State, now time.Duration, o Observation) (State, Decision) {
	z := c.decideWithoutAgain(s, now, o.withoutNegatives())
	switch c.Strategy {
	case Reactive:
		z.made.Again = z.againReactive()
	case KPA:
		z.made.Again = z.againKPA()
	default:
		z.made.Again = z.againEquation()
	}
	return z.s, z.made
}

// decideWithoutAgain is Decide but for Again.
func (c Config) decideWithoutAgain(s State, now time.Duration, o Observation) sizing {
	c = c.Normal()
	z := sizing{c: c, o: o, given: o, s: s.withObservation(c, now, o), before: s.Now}
	z.o.Most = z.s.mostNow(c, o)
	z.measure()
	var target int
	var reason Reason
	switch c.Strategy {
	case Reactive:
		target, reason = z.decideReactive()
	case KPA:
		target, reason = z.followMean()
	default:
		target, reason = z.solveEquation()
	}
	// After every strategy: where the subnet is exhausted each of them releases all at once, but the
	// agent goes down in steps, to see first whether other nodes take what it released.
	if keep := min(o.Keep, z.s.Target); o.Exhausted && target < keep {
		target, reason = keep, HoldInterval
	}
	if target < z.s.Target {
		z.s.LastRelease = z.s.Now
	}
	z.s.Target = target
	z.made = Decision{Target: target, Need: z.need, Smoothed: z.smoothed, Reason: reason, Burst: z.s.InBurst, Most: z.o.Most}
	return z
}

// withoutNegatives returns the observation with 0 for each number below 0.
func (o Observation) withoutNegatives() Observation {
	for _, n := range []*int{&o.Demand, &o.Assigned, &o.Owned, &o.Releasing, &o.Primaries, &o.Most, &o.Room, &o.Cooling} {
		*n = max(*n, 0)
	}
	return o
}

// sizing is a decision in the making. Until it is made, s.Target is the last one.
type sizing struct {
	c      Config
	o      Observation // with a Most that knows what cooled down
	given  Observation // as it was observed
	s      State
	before int // second of the sample before
	made   Decision

	need     int // of the demand of now
	stable   int // of the mean demand
	delayed  int // of the highest demand
	smoothed int // the highest of the three
	unheld   int // the target that the strategy wants, before anything holds or bounds it
}

// needOf returns what that demand needs. Windows hold demands and not needs, so a
// changed configuration counts for their past too; as more demand never needs less,
// the need of the highest demand is the highest need.
func (z *sizing) needOf(demand int) int { return z.c.Need(demand, z.o.Primaries, z.o.Most) }

// measure works out what the demand of now, of the mean and of the highest needs.
func (z *sizing) measure() {
	highest, _ := z.s.peak(seconds(z.c.Delay))
	z.need = z.needOf(z.s.Demand)
	z.stable = z.needOf(z.s.mean(seconds(z.c.Stable)))
	z.delayed = z.needOf(highest)
	z.smoothed = max(z.need, z.stable, z.delayed)
}

// judgeBurst begins a burst when the demand needs a multiple of the pool, which is
// when the cloud has not delivered yet or pods are being replaced, and ends it a
// stable window after that was last so.
func (z *sizing) judgeBurst() {
	s := &z.s
	switch over := z.isOver(s.mean(seconds(z.c.BurstWindow))); {
	case over && !s.InBurst:
		s.InBurst, s.LastOver, s.HighWater = true, s.Now, max(z.smoothed, s.Target)
	case over:
		s.LastOver = s.Now
	case s.InBurst && s.Now-s.LastOver > seconds(z.c.Stable):
		s.InBurst, s.HighWater = false, 0
	}
}

// isOver tells whether a mean demand is a burst's. An empty pool counts as one batch, or the first pod
// would be a burst.
func (z *sizing) isOver(mean int) bool {
	return 100*z.needOf(mean) >= z.c.BurstPercent*max(z.o.Owned, z.c.Batch)
}

// solveEquation decides with the strategy Equation: the scaling equation says what the pods
// need, and the damping of Decide says how far the target may go there from the last one.
func (z *sizing) solveEquation() (int, Reason) {
	z.judgeBurst()
	last := z.s.Target
	z.unheld = z.smoothed
	floor := max(z.need, z.o.Assigned)
	if z.o.Exhausted {
		// Other nodes need every address. So the highest demand of a short time and a small spare
		// count, not whole batches and a share to keep free, and only addresses that pods have bound
		// the target from below.
		highest, _ := z.s.peak(seconds(z.c.ExhaustedDelay))
		z.unheld = min(highest+z.c.ExhaustedSpare, z.o.Most)
		floor = z.o.Assigned
	}
	target := z.unheld
	if z.isFrozen() {
		// Pods that are replaced end before the new ones come: what a burst needed once it may need
		// again. So the target stays at the highest of this burst, the last target and the floor among
		// it, as far as the node can hold that.
		z.s.HighWater = max(z.s.HighWater, z.smoothed, min(max(last, floor), z.o.Most))
		target = min(z.s.HighWater, z.o.Most)
	}
	if target < last {
		target = max(target, z.lowestTarget())
	}
	target = max(target, floor) // after all dampers: addresses that pods have can't be released
	return target, z.explainEquation(target)
}

// isFrozen tells whether a burst keeps the pool. In an exhausted subnet none does.
func (z *sizing) isFrozen() bool { return z.s.InBurst && !z.o.Exhausted }

// lowestTarget returns how far down the target may go in this call: 0 for as far as it wants.
// A step divides the target by ShrinkPercent, rounded up to whole batches, but it goes at least to
// the next lower number of whole batches: otherwise the last batch would never be released.
func (z *sizing) lowestTarget() int {
	last := z.s.Target
	switch {
	case z.holdReason() != "":
		return last
	case z.o.Exhausted:
		return 0
	case z.isResting():
		return last
	}
	p := z.c.counted(z.o.Primaries)
	divided := z.aligned(ceilDiv(100*last, z.c.ShrinkPercent)+p+z.c.Batch-1) - p
	return min(divided, z.aligned(last-1+p)-p)
}

// aligned rounds down to whole batches.
func (z *sizing) aligned(n int) int { return n / z.c.Batch * z.c.Batch }

// holdReason names what forbids any release, whether the subnet is exhausted or not. It is "" if nothing does.
func (z *sizing) holdReason() Reason {
	switch {
	case !z.o.Valid:
		return HoldUnreadable
	case z.s.ValidSeconds < seconds(z.c.Stable):
		return HoldBoot
	}
	return ""
}

// isResting tells whether the last release was less than a ReleaseInterval ago.
func (z *sizing) isResting() bool { return z.s.Now-z.s.LastRelease < seconds(z.c.ReleaseInterval) }
