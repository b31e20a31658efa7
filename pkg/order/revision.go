package order

import (
	"math"
	"slices"
	"time"
)

// MostSeen is the highest revision that a spec may say its node has seen. It stands in the object's schema too. No operator counts as far,
// and from there on it still can: a number that somebody makes up can't stop it.
const MostSeen = 1 << 52

// NextRevision returns the revision of a changed status: above the one that it has, and above the one that the agent has seen.
func NextRevision(v View) int64 {
	last := max(v.Status.Revision, v.Spec.seen())
	if last == math.MaxInt64 {
		return last
	}
	return last + 1
}

// seen returns SeenRevision within what it can be.
func (s Spec) seen() int64 { return min(max(s.SeenRevision, 0), MostSeen) }

// IsBehind tells whether the status is older than one that its agent has seen (S5). Nothing is accepted, and nothing grows, until
// the operator has described.
func IsBehind(v View) bool { return v.Spec.seen() > v.Status.Revision }

// Knows tells whether a describe that began then says enough of a node whose status is behind. The store of the objects was put back then,
// and with it what was written of calls that may still be under way: they have to be over first.
func (t *Term) Knows(v View, now, began Moment) bool {
	if !IsBehind(v) {
		t.behind, t.ended = 0, 0
		return true
	}
	if v.Status.Revision == 0 && v.Spec.seen() <= t.ended {
		return true // the object before was not put back: it ended, with all that was under way
	}
	if t.behind == 0 {
		t.behind = max(now.Mono, 1)
	}
	return began.Mono >= t.behind+t.Lease.Fence
}

// KnownFrom returns from when on a describe says enough of a node whose status is behind, 0 where it is not known to be.
func (t *Term) KnownFrom() time.Duration {
	if t.behind == 0 {
		return 0
	}
	return t.behind + t.Lease.Fence
}

// Follow tells the term of a new object that this leader has seen the object before end, at a time and with a revision: nothing that was accepted was
// open, and every quarantine was over. So no call of before has an effect any more, and describes show what those have done from Settle after on.
// An agent that has seen no later revision is not behind then: it remembers the object before. That counts until the new status is ahead of it.
func (t *Term) Follow(revision int64, at time.Duration) {
	t.ended, t.Acquired = revision, max(t.Acquired, at)
}

// Skip returns the status with which no ENI is begun with a token any more; uid is the object's. Nothing changes if it is not the next one's.
func (t *Term) Skip(v View, uid, token string) Status {
	if token != Token(uid, v.Status.Created) {
		return v.Status
	}
	next := t.beginChange(v.Status)
	next.Created++
	return t.endChange(v, next)
}

// mostLeaders is how many leaders a status has. An agent that more of them have written past while it was away knows less.
const mostLeaders = 8

// leaders returns who has written a status whose next revision this leader writes. Where that is above what the agent has seen of a store that was
// put back, who wrote before that says nothing any more.
func (t *Term) leaders(v View, revision int64) []Leader {
	list := v.Status.Leaders
	switch n := len(list); {
	case IsBehind(v), n > 0 && list[n-1].Epoch != v.Status.Epoch: // or one that names no leaders has written since
		list = nil
	case v.Status.Epoch == t.Epoch:
		return list
	}
	list = append(slices.Clone(list), Leader{t.Epoch, revision})
	return list[max(0, len(list)-mostLeaders):]
}

// writerOf returns which leader wrote a revision, 0 where the status does not tell, as one whose last leader is of a release that names none.
func (s Status) writerOf(revision int64) (epoch int64) {
	if n := len(s.Leaders); n == 0 || s.Leaders[n-1].Epoch != s.Epoch {
		return 0
	}
	for _, l := range s.Leaders {
		if l.First <= revision {
			epoch = l.Epoch
		}
	}
	return epoch
}
