package order

import (
	"cmp"
	"maps"
	"net/netip"
	"time"
)

// thing is what a describe may lack: an ENI, or an address on one.
type thing struct {
	eni    string
	prefix netip.Prefix // the zero Prefix: the ENI itself
}

// compareWith takes in that a describe is compared with the status, and returns how what it lacks is judged: lacks notes that, and tells
// whether it proves that the thing is gone. Pages are no snapshot, so what exists may be on none of them, and others' changes
// move what the later ones have: one describe proves nothing. What the describe shows is forgotten to have been lacked.
func (t *Term) compareWith(d Description) (lacks func(thing) bool) {
	before, began := t.lacked, d.Began.Mono
	t.described, t.lacked = began, map[thing]time.Duration{}
	t.forgetOld(began)
	return func(what thing) bool {
		since, lackedBefore := before[what]
		if d.Partial {
			if lackedBefore {
				t.lacked[what] = since
			}
			return false
		}
		if !lackedBefore {
			since = began
		}
		t.lacked[what] = since
		return began >= since+t.Lease.Settle
	}
}

// forgetOld drops what no describe that begins now or later can show against the truth.
func (t *Term) forgetOld(began time.Duration) {
	over := func(until time.Duration) bool { return until <= began }
	maps.DeleteFunc(t.taken, func(_ netip.Prefix, until time.Duration) bool { return over(until) })
	maps.DeleteFunc(t.given, func(_ netip.Prefix, until time.Duration) bool { return over(until) })
	maps.DeleteFunc(t.made, func(_ string, until time.Duration) bool { return over(until) })
}

// DescribeAgain returns when a describe tells whether what the last one lacked is gone, and whether it lacked anything.
func (t *Term) DescribeAgain() (at time.Duration, is bool) {
	for _, since := range t.lacked {
		if again := since + t.Lease.Settle; !is || again < at {
			at, is = again, true
		}
	}
	return at, is
}

// latest returns the most that is noted of prefixes that have an address in common with p: what goes in one form may come back in another.
func latest[V cmp.Ordered](noted map[netip.Prefix]V, p netip.Prefix) (most V) {
	for of, v := range noted {
		if of.Overlaps(p) {
			most = max(most, v)
		}
	}
	return most
}

// deleteWithin forgets what is noted of p and of addresses within it. A wider prefix has others too.
func deleteWithin[V any](noted map[netip.Prefix]V, p netip.Prefix) {
	maps.DeleteFunc(noted, func(of netip.Prefix, _ V) bool { return of.Bits() >= p.Bits() && p.Overlaps(of) })
}
