package scale

import (
	"iter"
	"slices"
	"time"
)

// State is what the decisions about one pool remember. It is a value: Decide
// returns the next one and leaves the one it was given as it was, so a State may
// be kept, copied and decided upon twice. Copies share the memory of Past, which
// is never written to: who changes a State by hand gives it a new Past.
//
// It encodes to JSON and back without loss, runs of equal demand as one. Its times
// are seconds since boot, so it ends with the boot: after a reboot, New.
type State struct {
	Now int `json:"now"` // second of the newest sample; it never goes back

	// The demand of each second up to Now: first Past, oldest run first, then
	// Newest. Within a second the highest counts. No run, no sample yet.
	Past   []Run `json:"past,omitempty"`
	Newest Run   `json:"newest"`
	Demand int   `json:"demand"` // holds until the next sample

	Valid        bool `json:"valid"`        // the newest sample was readable
	ValidSeconds int  `json:"validSeconds"` // between readable samples, up to the stable window

	InBurst   bool `json:"inBurst"`
	LastOver  int  `json:"lastOver"`  // second in which the demand last was a burst's
	HighWater int  `json:"highWater"` // no target below it in a burst

	Target      int `json:"target"`      // the newest decision's
	LastRelease int `json:"lastRelease"` // second of the newest decision that lowered it
}

// Run is a number of seconds in a row with the same demand.
type Run struct {
	Demand  int `json:"d"`
	Seconds int `json:"s"`
}

// New returns the state of a pool of that many addresses about which nothing else
// is known. It counts as a burst and as having released just now: a start of the
// agent is no reason to give addresses back.
func New(_ Config, owned int, now time.Duration) State {
	owned, t := max(owned, 0), seconds(now)
	return State{Now: t, InBurst: true, LastOver: t, HighWater: owned, Target: owned, LastRelease: t}
}

// observe takes a sample. An unreadable one stands for what was there before; the
// addresses that pods have count in any case.
func (s State) observe(c Config, now time.Duration, o Observation) State {
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
	switch silent := t - s.Now - 1; {
	case s.Newest.Seconds == 0:
		s.Newest = Run{demand, 1}
	case silent < 0:
		s = s.raise(demand)
	default:
		s = s.extend(s.Demand, silent, keep).extend(demand, 1, keep)
	}
	s.Now, s.Demand, s.Valid = t, demand, o.Valid
	return s.forget(keep)
}

// extend appends n seconds of a demand; runs longer than keep say nothing more.
func (s State) extend(demand, n, keep int) State {
	switch {
	case n <= 0:
	case demand == s.Newest.Demand:
		s.Newest.Seconds = min(s.Newest.Seconds+n, keep)
	default:
		s.Past = slices.Concat(s.Past, []Run{s.Newest})
		s.Newest = Run{demand, min(n, keep)}
	}
	return s
}

// raise takes another sample of the newest second.
func (s State) raise(demand int) State {
	if demand <= s.Newest.Demand {
		return s
	}
	if s.Newest.Seconds > 1 {
		s.Past = slices.Concat(s.Past, []Run{{s.Newest.Demand, s.Newest.Seconds - 1}})
	}
	s.Newest = Run{demand, 1}
	return s
}

// forget drops the runs that are older than keep seconds.
func (s State) forget(keep int) State {
	covered := s.Newest.Seconds
	for i := len(s.Past) - 1; i >= 0; i-- {
		if covered >= keep {
			s.Past = s.Past[i+1:]
			break
		}
		covered += s.Past[i].Seconds
	}
	if len(s.Past) == 0 {
		s.Past = nil
	}
	return s
}

// runs yields the newest w seconds, newest run first, as far as there are any.
func (s State) runs(w int) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		r := s.Newest
		for i := len(s.Past) - 1; w > 0; i-- {
			r.Seconds = min(r.Seconds, w)
			w -= r.Seconds
			if !yield(r) || i < 0 {
				return
			}
			r = s.Past[i]
		}
	}
}

// mean returns the mean demand of the newest w seconds, rounded up. Seconds before
// the first sample are not there: they are no zeros.
func (s State) mean(w int) int {
	sum, n := 0, 0
	for r := range s.runs(w) {
		sum += r.Demand * r.Seconds
		n += r.Seconds
	}
	if n == 0 {
		return s.Demand
	}
	return ceilDiv(sum, n)
}

// peak returns the highest demand of the newest w seconds and the second in which
// it was there last; with w = 0 the demand of now.
func (s State) peak(w int) (demand, at int) {
	demand, at = s.Demand, s.Now
	t := s.Now
	for r := range s.runs(w) {
		if r.Demand > demand {
			demand, at = r.Demand, t
		}
		t -= r.Seconds
	}
	return demand, at
}

// turn returns after how many seconds without a new sample the mean of the newest
// w seconds first is something that is not the same, 0 if it never is.
func (s State) turn(w int, same func(mean int) bool) int {
	if s.Newest.Demand == s.Demand && (s.Newest.Seconds >= w || s.Past == nil) {
		return 0
	}
	sum, n, found := 0, 0, 0
	look := func(later int) {
		// n old seconds are still in the window, the others are held ones.
		if !same(ceilDiv(sum+later*s.Demand, n+later)) {
			found = later
		}
	}
	for r := range s.runs(w) {
		for range r.Seconds {
			look(w - n)
			sum += r.Demand
			n++
		}
	}
	for later := w - n; later > 0; later-- {
		look(later)
	}
	return found
}

// seconds returns the whole seconds of d.
func seconds(d time.Duration) int { return int(d / time.Second) }
