package scale

import "time"

// KPAForm says whose words count where sources/kpa-algorithms.md and the implementation
// that it describes differ.
type KPAForm uint8

// The forms differ in when the least number of batches counts. KPADocument: where any are
// wanted, those among them that the limit down keeps. KPAKnative: where the pods ask for any.
//
// Everything else agrees once a pool is asked every second, which Decide is as good as. In the
// document a burst ends a stable window after the load dropped, in the implementation more than
// one after the load last was a burst's: that is the same second. To limit the larger of two
// numbers gives the same as to take the larger of two limited ones, so the limits may come before
// or after the burst.
const (
	KPADocument KPAForm = iota
	KPAKnative
)

// String returns "document" or "knative".
func (f KPAForm) String() string {
	if f == KPAKnative {
		return "knative"
	}
	return "document"
}

// KPAConfig is what the strategy KPA has beside the rest of Config.
type KPAConfig struct {
	Form        KPAForm
	Utilization int // percent of a batch that pods should use: the target value of a batch
	GrowPercent int // over 100: a step up multiplies the pool by at most this
	Activation  int // batches: the fewest where there are any
}

// DefaultKPA returns what the document has, with batches that are to be used up to 70 %.
func DefaultKPA() KPAConfig {
	return KPAConfig{Utilization: 70, GrowPercent: 100_000, Activation: 1}
}

// kpaState is what the strategy KPA remembers beside the rest of State.
type kpaState struct {
	Wanted Series `json:"wanted"` // what a decision wanted before the delay and the bounds, in addresses
	Want   int    `json:"want"`   // holds until the next decision
	Over   bool   `json:"over"`   // the newest demand is a burst's
}

// followMean decides with the strategy KPA, sources/kpa-algorithms.md: a batch is what a pod is
// there, and used addresses are the metric. The mean of Stable says how many batches there
// should be, that of BurstWindow too while it bursts; then come the limits, the delay and the
// bounds.
//
// A pool differs from a deployment in three ways. It has no less than whole batches for the
// pods of now: an average would let them wait. What limits a step down limits each
// ReleaseInterval, not each call. And it begins with the addresses that it finds, as
// Knative's does, where the document says nothing.
func (z *sizing) followMean() (int, Reason) {
	last, floor := z.s.Target, max(z.need, z.o.Assigned)
	ready := max(1, ceilDiv(z.o.Owned+z.c.counted(z.o.Primaries), z.c.Batch))
	z.unheld = max(z.need, z.boundTarget(z.recommendAddresses(z.batchesForMean(z.c.Stable), z.batchesForMean(z.c.BurstWindow), ready)))
	if z.o.Exhausted {
		highest, _ := z.s.peak(seconds(z.c.ExhaustedDelay))
		z.unheld, floor = min(highest+z.c.ExhaustedSpare, z.o.Most), z.o.Assigned
	}
	target := z.unheld
	if target < last && (z.holdReason() != "" || z.isResting() && !z.o.Exhausted) {
		target = last
	}
	target = max(target, floor)
	return target, z.explainKPA(target, last)
}

// recommendAddresses is one evaluation of the document, but for the bounds. Its arguments are the
// batches that the means of Stable and of BurstWindow ask for, and those that there are.
func (z *sizing) recommendAddresses(stable, burst, ready int) int {
	z.judgeKPA(burst, ready)
	asked := stable
	if z.s.InBurst {
		asked = max(stable, burst)
	}
	z.smoothed = max(z.need, z.boundTarget(z.addressesOf(asked)))
	z.noteWanted(z.addressesOf(z.limitStep(asked, ready)))
	highest, _ := z.s.KPA.Wanted.highest(seconds(z.c.Delay))
	return max(z.s.KPA.Want, highest)
}

// batchesForMean returns how many the mean of the newest seconds asks for.
func (z *sizing) batchesForMean(window time.Duration) int {
	sum, n := z.s.sum(seconds(window))
	sum += n * z.c.counted(z.o.Primaries)
	return ceilDiv(100*sum, max(n, 1)*z.c.Batch*z.c.KPA.Utilization)
}

// addressesOf returns how many addresses pods can use of a number of batches.
func (z *sizing) addressesOf(batches int) int {
	return max(0, batches*z.c.Batch-z.c.counted(z.o.Primaries))
}

// boundTarget applies the bounds.
func (z *sizing) boundTarget(target int) int { return min(max(target, z.c.MinPool), z.o.Most) }

// judgeKPA begins a burst, goes on with it, or ends it. What was observed holds until
// something else is, and so does what it is.
func (z *sizing) judgeKPA(burst, ready int) {
	s := &z.s
	if s.KPA.Over {
		s.LastOver = max(s.LastOver, s.Now-1)
	}
	s.KPA.Over = 100*burst >= z.c.BurstPercent*ready
	switch {
	case s.KPA.Over && !s.InBurst:
		s.InBurst, s.LastOver, s.HighWater = true, s.Now, 0
	case s.KPA.Over:
		s.LastOver = s.Now
	case s.InBurst && s.Now-s.LastOver > seconds(z.c.Stable):
		s.InBurst, s.HighWater = false, 0
	}
}

// limitStep applies the limits of a step, then the least number of batches.
func (z *sizing) limitStep(asked, ready int) int {
	limited := max(asked, 100*ready/z.c.ShrinkPercent)
	limited = min(limited, ceilDiv(ready*z.c.KPA.GrowPercent, 100))
	if asked > 0 || z.c.KPA.Form == KPADocument && limited > 0 {
		limited = max(limited, z.c.KPA.Activation)
	}
	return limited
}

// noteWanted records how many addresses are wanted: in a burst no fewer than ever in that burst.
func (z *sizing) noteWanted(wanted int) {
	s, keep, kept := &z.s, max(seconds(z.c.Delay), 1), min(max(z.s.Target, z.need, z.o.Assigned), z.o.Most)
	if s.KPA.Wanted.Newest.Seconds == 0 { // another strategy decided before, or nobody
		s.KPA.Wanted.Newest = Run{kept, 1}
	}
	s.KPA.Wanted = s.KPA.Wanted.sample(wanted, s.Now-z.before, s.KPA.Want, keep)
	if s.InBurst && !z.o.Exhausted {
		highest, _ := s.KPA.Wanted.highest(seconds(z.c.Delay))
		s.HighWater = max(s.HighWater, wanted, highest, kept)
		wanted = s.HighWater
		s.KPA.Wanted = s.KPA.Wanted.raise(wanted).forget(keep)
	}
	s.KPA.Want = wanted
}

// explainKPA explains the target.
func (z *sizing) explainKPA(target, last int) Reason {
	switch {
	case target > z.unheld && (target == last || z.o.Exhausted):
		return z.nameHolder()
	case z.o.Exhausted:
		return Exhausted
	case target < last:
		return Release
	case target > last:
		return Up
	case target > z.smoothed && z.s.InBurst:
		return HoldBurst
	case target > z.smoothed:
		return HoldDelay
	case target > z.need:
		return HoldStable
	case target < z.addressesOf(ceilDiv(z.s.Demand+z.c.counted(z.o.Primaries), z.c.Batch)):
		return Clamped
	}
	return Steady
}

// mostAhead is how many seconds againKPA decides ahead.
const mostAhead = 60

// againKPA returns when a decision can change first, a time since boot, 0 for never. It decides
// for each of the next seconds until one differs: what two means, a burst and a delay do together
// has no short formula. If none differs it is to be asked again after mostAhead.
func (z *sizing) againKPA() time.Duration {
	if z.atRest() {
		return 0
	}
	now := z.s.Now
	for second := now + 1; second < now+mostAhead; second++ {
		if later := z.c.decideWithoutAgain(z.s, time.Duration(second)*time.Second, z.given); later.differs(*z) {
			return time.Duration(second) * time.Second
		}
	}
	return time.Duration(now+mostAhead) * time.Second
}

// differs tells whether a later second has brought anything that the next would not.
func (z sizing) differs(from sizing) bool {
	a, b, x, y := z.made, from.made, z.s.KPA, from.s.KPA
	if b.Reason == Up || b.Reason == Release { // they name a moment
		b.Reason = a.Reason
	}
	return a != b || x.Over != y.Over || x.Want != y.Want || z.s.HighWater != from.s.HighWater
}

// atRest tells whether nothing changes until something new is observed.
func (z *sizing) atRest() bool {
	s, k := z.s, z.s.KPA
	window := seconds(max(z.c.Stable, z.c.BurstWindow, z.c.ExhaustedDelay))
	settled := s.Series.holds(s.Demand, window) && k.Wanted.holds(k.Want, seconds(z.c.Delay))
	most, _ := s.Cooling.peak(seconds(z.c.Delay))
	settled = settled && most == s.Cooling.Count
	readable := !z.o.Valid || s.ValidSeconds >= seconds(z.c.Stable)
	named := s.Target <= z.unheld || !z.isResting() // what holds the target has another name when the interval is over
	return settled && readable && named && (!s.InBurst || k.Over) && (s.Target <= max(z.unheld, z.o.Assigned) || !z.o.Valid)
}
