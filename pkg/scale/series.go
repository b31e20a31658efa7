package scale

import (
	"iter"
	"slices"
)

// Series is a number of addresses for each second up to the newest sample: first Past,
// oldest run first, then Newest. Within a second the highest counts, and between two
// samples the older one holds. No run, no sample yet.
type Series struct {
	Past   []Run `json:"past,omitempty"`
	Newest Run   `json:"newest"`
}

// Run is a number of seconds in a row with the same demand.
type Run struct {
	Demand  int `json:"d"`
	Seconds int `json:"s"`
}

// sample takes what is there now, passed seconds after the newest sample, since when held
// was there. What is older than keep seconds is forgotten.
func (s Series) sample(now, passed, held, keep int) Series {
	switch {
	case s.Newest.Seconds == 0:
		s.Newest = Run{now, 1}
	case passed <= 0:
		s = s.raise(now)
	default:
		s = s.extend(held, passed-1, keep).extend(now, 1, keep)
	}
	return s.forget(keep)
}

// extend appends n seconds of a demand; runs longer than keep say nothing more.
func (s Series) extend(demand, n, keep int) Series {
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

// raise takes another sample of the newest second: the higher one counts.
func (s Series) raise(demand int) Series {
	if demand <= s.Newest.Demand {
		return s
	}
	last := len(s.Past) - 1
	switch {
	case s.Newest.Seconds > 1:
		s.Past = slices.Concat(s.Past, []Run{{s.Newest.Demand, s.Newest.Seconds - 1}})
	case last >= 0 && s.Past[last].Demand == demand:
		s.Newest = s.Past[last]
		s.Newest.Seconds++
		s.Past = s.Past[:last]
		return s
	}
	s.Newest = Run{demand, 1}
	return s
}

// forget drops the runs that are older than keep seconds.
func (s Series) forget(keep int) Series {
	s.Newest.Seconds = min(s.Newest.Seconds, keep)
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
func (s Series) runs(w int) iter.Seq[Run] {
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

// sum returns the sum of the newest w seconds, and how many there are. Seconds before the
// first sample are not there: they are no zeros.
func (s Series) sum(w int) (sum, n int) {
	for r := range s.runs(w) {
		sum += r.Demand * r.Seconds
		n += r.Seconds
	}
	return sum, n
}

// mean returns the mean of the newest w seconds, rounded up.
func (s State) mean(w int) int {
	sum, n := s.sum(w)
	if n == 0 {
		return s.Demand
	}
	return ceilDiv(sum, n)
}

// peak returns the highest demand of the newest w seconds and the second in which
// it was there last; with w = 0 the demand of now.
func (s State) peak(w int) (demand, at int) {
	demand, at = s.Demand, s.Now
	if highest, ago := s.highest(w); highest > demand {
		demand, at = highest, s.Now-ago
	}
	return demand, at
}

// highest returns the highest number of the newest w seconds, and how many seconds before
// the newest one it was there last.
func (s Series) highest(w int) (highest, ago int) {
	passed := 0
	for r := range s.runs(w) {
		if r.Demand > highest {
			highest, ago = r.Demand, passed
		}
		passed += r.Seconds
	}
	return highest, ago
}

// holds tells whether the newest w seconds are this number, as far as there are any.
func (s Series) holds(n, w int) bool {
	return s.Newest.Demand == n && (s.Newest.Seconds >= w || s.Past == nil)
}

// secondsToChange returns after how many seconds without a new sample the mean of the newest
// w seconds first is something that is not the same, 0 if it never is.
func (s State) secondsToChange(w int, same func(mean int) bool) int {
	if s.holds(s.Demand, w) {
		return 0
	}
	sum, n, found := 0, 0, 0
	try := func(later int) {
		// After later seconds the window has the newest n old seconds, with their sum, and later ones
		// with the demand of now.
		if !same(ceilDiv(sum+later*s.Demand, n+later)) {
			found = later
		}
	}
	for r := range s.runs(w) {
		for range r.Seconds {
			try(w - n)
			sum += r.Demand
			n++
		}
	}
	for later := w - n; later > 0; later-- {
		try(later)
	}
	return found
}
