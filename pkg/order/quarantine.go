package order

import (
	"net/netip"
	"time"
)

// fence is a quarantine as a leader knows it: on its monotonic clock, since the clock by which the end is written down may be set.
type fence struct {
	since time.Duration // when it was seen or began
	least time.Duration // how long it lasts from then on at least
}

// left is how much of a quarantine is left by the time of day, as much as there can be.
func (l Lease) left(q Quarantined, wall time.Time) time.Duration {
	return min(max(q.Until.Sub(wall), 0), l.Fence)
}

// noteQuarantined takes in the quarantines that an earlier leader has begun, as they are when a describe begins.
func (t *Term) noteQuarantined(s Status, at Moment) {
	for _, q := range s.Quarantined {
		if _, known := t.fences[q.Prefix]; !known {
			t.fences[q.Prefix] = fence{at.Mono, t.Lease.left(q, at.Wall)}
		}
	}
}

// QuarantineEnds returns when a describe may begin that ends the quarantine, on the monotonic clock: when it is over by both clocks. A time of
// day that was put back delays it by no more than a fence since the leader knows of it.
func (t *Term) QuarantineEnds(q Quarantined, now Moment) time.Duration {
	f, known := t.fences[q.Prefix]
	if !known {
		f = fence{now.Mono, t.Lease.left(q, now.Wall)}
	}
	byWall := min(max(q.Until.Sub(now.Wall), -now.Mono), t.Lease.Fence+1)
	return max(f.since+f.least, min(now.Mono+byWall, f.since+t.Lease.Fence))
}

// endQuarantines ends what was over when a describe began: no late call can change what it shows, so what it shows is the node's (S7).
// What the status has and it lacks may be what such a call has taken. It tells whether anything has ended.
func (t *Term) endQuarantines(s *Status, d Description) (ended bool) {
	t.noteQuarantined(*s, d.Began)
	if len(s.Quarantined) == 0 {
		return false
	}
	there, shown := s.presentAddrs(), d.addrs(s.Limits)
	var stay []Quarantined
	for _, q := range s.Quarantined {
		// In whatever form it is back: what the describe does not show of it the node must not have either.
		proven := len(partOf(s.Limits, q.Prefix, func(a netip.Addr) bool { return there[a] && !shown[a] })) == 0
		if t.QuarantineEnds(q, d.Began) > d.Began.Mono || !proven {
			stay = append(stay, q)
			continue
		}
		delete(t.fences, q.Prefix)
		ended = true
	}
	s.Quarantined = stay
	return ended
}

// quarantine lets nobody have an address for as long as a late call may take it.
func (t *Term) quarantine(s *Status, p netip.Prefix, now Moment) {
	t.fences[p] = fence{now.Mono, t.Lease.Fence}
	s.quarantineUntil(p, now.Wall.Add(t.Lease.Fence))
}
