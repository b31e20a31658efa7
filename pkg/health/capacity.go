package health

import "time"

// size decides how many pods can have addresses here: as many as the node can ever
// hold, or as many as it has where it can't get more for Grace or is faulty, until it
// could for Quiet. It is never less than pods have already, and it does not change
// twice within Grace.
func (s *State) size(c Config, now time.Duration, o Observation) {
	if !o.Usable || o.Most < 0 {
		return // what was told last is still the best guess
	}
	s.Stuck = keepSince(s.Stuck, o.Stuck, now)
	s.Loose = keepSince(s.Loose, !o.Stuck, now)
	switch {
	case s.Stuck > 0 && now-s.Stuck >= c.Grace, s.Faulty && !o.well():
		s.Capped = true
	case s.Loose > 0 && now-s.Loose >= c.Quiet:
		s.Capped = false
	}
	want := o.Most
	if s.Capped {
		want = min(want, o.Have)
	}
	s.Next = 0
	switch want = max(want, o.Used); {
	case want == s.Capacity:
	case s.Capacity < 1 || now-s.Told >= c.Grace: // the first address is told at once
		s.Capacity, s.Told = want, now
	default:
		s.Next = s.Told + c.Grace
	}
}
