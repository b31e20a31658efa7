package kube

import (
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
)

const (
	// unasked is how long a node may show more room than it has while none of its pods
	// asks for any: pods that start together are one write.
	unasked = 30 * time.Second
	// hidden is how long it may show less than half of its room, and outgrown how long it
	// may show less than all of it.
	hidden   = time.Minute
	outgrown = 30 * time.Minute
	// seldom is how often the number is written where nobody is wronged by the old one,
	// after the first few times.
	seldom = 10 * time.Minute
	// young is how long a node that has an address shows one at least: Karpenter takes a node as complete once it has seen
	// more than none of what its pods ask for, and until then never replaces it.
	young = time.Hour
)

// room decides when the number of addresses that a node shows is written again, because
// pods that do not ask for theirs came or went. Too much shown room brings pods that get
// no address; too little costs nothing as long as there is enough. So a number that was
// true when the most of them were there stays for a while.
type room struct {
	known     bool
	capacity  int // as reported
	uncounted int // what the number takes off for pods that did not ask
	least     int // that it is, whatever pods did not ask

	over, under, far spell // it shows more room than there is, less, less than half of it
	turns            *rate.Limiter
}

func newRoom() *room { return &room{turns: rate.NewLimiter(rate.Every(seldom), quick)} }

// numberToShow returns the number that the node should show, and after how long to ask again
// if nothing changes before, 0 for never.
func (r *room) numberToShow(now time.Time, capacity int, needed load, node *corev1.Node) (n int, again time.Duration) {
	if !r.known || capacity != r.capacity {
		r.beginCapacity(capacity, needed, node)
	}
	r.least = 0
	if left := node.CreationTimestamp.Add(young).Sub(now); capacity > 0 && left > 0 {
		if r.least = 1; needed.silent >= capacity {
			again = left
		}
	}
	shown, truth := r.number(r.uncounted, needed.asked), r.number(needed.silent, needed.asked)
	if shown > truth && needed.asked > 0 { // the next pod that asks is bound by it
		r.setUncounted(needed.silent)
		return truth, again
	}
	r.over.note(shown > truth, needed.silent, now)
	r.under.note(shown < truth, needed.silent, now)
	r.far.note(2*(shown-needed.asked) < truth-needed.asked, needed.silent, now)
	for _, s := range []struct {
		*spell
		bound time.Duration
	}{{&r.over, unasked}, {&r.far, hidden}, {&r.under, outgrown}} {
		if s.since.IsZero() {
			continue
		}
		wait := s.since.Add(s.bound).Sub(now)
		if wait <= 0 {
			if wait = r.reserveTurn(now); wait == 0 {
				r.setUncounted(s.most)
				return r.numberToShow(now, capacity, needed, node)
			}
		}
		if again == 0 || wait < again {
			again = wait
		}
	}
	return shown, again
}

// number returns the number to show where so many pods did not ask and so many addresses were asked for.
func (r *room) number(silent, asked int) int {
	return max(publishedNumber(r.capacity, silent, asked), r.least)
}

// beginCapacity starts from a new capacity, which is a write of its own. An agent that follows on another one
// goes on from the number that the node shows if that is good enough.
func (r *room) beginCapacity(capacity int, needed load, node *corev1.Node) {
	off := needed.silent
	if q, is := node.Status.Capacity[Resource]; is && !r.known {
		shown, truth := int(q.Value()), publishedNumber(capacity, needed.silent, needed.asked)
		if shown <= truth && 2*(shown-needed.asked) >= truth-needed.asked {
			off = capacity - shown
		}
	}
	r.known, r.capacity = true, capacity
	r.setUncounted(off)
}

func (r *room) setUncounted(off int) {
	r.uncounted = off
	r.over, r.under, r.far = spell{}, spell{}, spell{}
}

// reserveTurn takes one of the few turns to write, or returns when there is one.
func (r *room) reserveTurn(now time.Time) time.Duration {
	turn := r.turns.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > 0 {
		turn.CancelAt(now)
	}
	return wait
}

// spell is since when something has been so, and how many pods did not ask at most meanwhile.
type spell struct {
	since time.Time
	most  int
}

func (s *spell) note(is bool, silent int, now time.Time) {
	switch {
	case !is:
		*s = spell{}
	case s.since.IsZero():
		*s = spell{now, silent}
	default:
		s.most = max(s.most, silent)
	}
}
