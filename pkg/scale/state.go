package scale

import "time"

// State is what the decisions about one pool remember. It is a value: Decide
// returns the next one and leaves the one it was given as it was, so a State may
// be kept, copied and decided upon twice. Copies share the memory of Past, which
// is never written to: who changes a State by hand gives it a new Past.
//
// It encodes to JSON and back without loss, runs of equal demand as one. Its times
// are seconds since boot, so it ends with the boot: after a reboot, New.
type State struct {
	Now int `json:"now"` // second of the newest sample; it never goes back

	Series     // the demand
	Demand int `json:"demand"` // holds until the next sample

	Valid        bool `json:"valid"`        // the newest sample was readable
	ValidSeconds int  `json:"validSeconds"` // between readable samples, up to the stable window

	InBurst   bool `json:"inBurst"`
	LastOver  int  `json:"lastOver"`  // second in which the demand last was a burst's
	HighWater int  `json:"highWater"` // no target below it in a burst

	Target      int `json:"target"`      // the newest decision's
	LastRelease int `json:"lastRelease"` // second of the newest decision that lowered it

	Cooling coolingState `json:"cooling,omitzero"` // of a node that could hold more than Most

	KPA kpaState `json:"kpa,omitzero"` // of the strategy KPA alone
}

// New returns the state of a pool of that many addresses about which nothing else
// is known. It counts as a burst and as having released just now: a start of the
// agent is no reason to release addresses.
func New(_ Config, owned int, now time.Duration) State {
	owned, t := max(owned, 0), seconds(now)
	return State{Now: t, InBurst: true, LastOver: t, HighWater: owned, Target: owned, LastRelease: t}
}

// Resume returns the state that a restarted agent goes on with: as cautious as New, with the
// demand that s knows. The demand of the newest sample stands for the time that nobody
// watched, so who writes a State down before the demand exceeds it forgets no peak. What the
// pool should have had beyond what it has follows from the demand again.
func (s State) Resume(c Config, owned int, now time.Duration) State {
	next := New(c, owned, max(now, time.Duration(s.Now)*time.Second))
	next.Now, next.Series, next.Demand, next.KPA = s.Now, s.Series, s.Demand, s.KPA
	return next
}

// Peak returns the highest demand of the last time of that length, as far as it is remembered.
func (s State) Peak(of time.Duration) int {
	highest, _ := s.peak(seconds(of))
	return highest
}

// withObservation takes a sample. An unreadable one stands for what was there before; the
// addresses that pods have count in any case.
func (s State) withObservation(c Config, now time.Duration, o Observation) State {
	t := max(seconds(now), s.Now)
	demand := o.Demand
	if !o.Valid {
		demand = s.Demand
	}
	demand = max(demand, o.Assigned)
	if s.Valid && o.Valid {
		s.ValidSeconds = min(s.ValidSeconds+t-s.Now, seconds(c.Stable))
	}
	keep := seconds(max(c.Stable, c.Delay, c.BurstWindow, c.ExhaustedDelay, time.Second))
	s.Series = s.sample(demand, t-s.Now, s.Demand, keep)
	s.Cooling = s.Cooling.withSample(c, t-s.Now, o)
	s.Now, s.Demand, s.Valid = t, demand, o.Valid
	return s
}

// seconds returns the whole seconds of d.
func seconds(d time.Duration) int { return int(d / time.Second) }
