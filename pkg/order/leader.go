package order

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Moment is a time on a leader's two clocks.
type Moment struct {
	Mono time.Duration // its monotonic clock, by which it waits
	Wall time.Time     // what it writes down for who comes after it
}

// Term is what a leader knows of one node since it got the lease. No later leader needs it: what must outlive it is in the
// status.
type Term struct {
	Lease    Lease
	Epoch    int64
	Acquired time.Duration // when it got the lease

	// doubts counts, for an address that goes back, the calls that may still be under way: those with an unknown outcome and
	// those of earlier leaders.
	doubts map[netip.Prefix]int
	taken  map[netip.Prefix]time.Duration // until when a describe may still show what is gone
	given  map[netip.Prefix]time.Duration // until when a describe may not show yet what was assigned
	made   map[string]time.Duration       // the same of ENIs, by id
	fences map[netip.Prefix]fence         // of quarantined addresses
	behind time.Duration                  // since when the status is older than the agent has seen, 0 if it is not
	ended  int64                          // the last revision of the object before, see Follow

	described time.Duration           // when the last describe began that was compared with the status
	lacked    map[thing]time.Duration // what that one lacked, and since when describes lack it
}

// NewTerm returns what a leader knows of a node when it gets the lease.
func NewTerm(l Lease, epoch int64, acquired time.Duration) *Term {
	return &Term{Lease: l, Epoch: epoch, Acquired: acquired, doubts: map[netip.Prefix]int{},
		taken: map[netip.Prefix]time.Duration{}, given: map[netip.Prefix]time.Duration{}, made: map[string]time.Duration{},
		fences: map[netip.Prefix]fence{}, lacked: map[thing]time.Duration{}}
}

// beginChange returns a copy of the status for the leader to change. What is accepted in a status that an earlier leader wrote may
// be under way in that leader's name.
func (t *Term) beginChange(s Status) Status {
	if s.Epoch < t.Epoch {
		for _, p := range s.Releasing {
			t.doubts[p] = max(t.doubts[p], 1)
		}
	}
	return s.clone()
}

// endChange gives a changed status the leader's epoch and the next revision, above the one that the agent has seen.
func (t *Term) endChange(v View, next Status) Status {
	next.Revision = NextRevision(v)
	next.Leaders = t.leaders(v, next.Revision)
	next.Epoch = t.Epoch
	return next
}

// Renumber gives a changed status the numbers of one that this leader writes.
func (t *Term) Renumber(v View, next Status) Status { return t.endChange(v, next) }

// Led tells whether the leader may still write to the node: no later one has.
func (t *Term) Led(s Status) bool { return s.Epoch <= t.Epoch }

// Accept returns the status with what the leader accepts of what the agent publishes (S2), and whether there is anything. It is
// written with the view's resourceVersion; after a conflict it is decided again. While the agent has seen a later status
// than there is, or has not read of this leader, nothing is accepted: what the spec says may be as old (S5, S9).
func (t *Term) Accept(v View) (Status, bool) {
	if v.Spec.Mode != Operator || v.Status.Mode != Operator || !t.Led(v.Status) || IsBehind(v) || !t.Heard(v.Spec) {
		return v.Status, false
	}
	addrs, enis := Acceptable(v.Spec, v.Status), AcceptableInterfaces(v.Spec, v.Status)
	if len(addrs)+len(enis) == 0 {
		return v.Status, false
	}
	next := t.beginChange(v.Status)
	next.Releasing = append(next.Releasing, addrs...)
	next.LeavingInterfaces = append(next.LeavingInterfaces, enis...)
	return t.endChange(v, next), true
}

// Disown returns the status of an object that was made again from a backup with its status, which is one of before: what it has accepted may
// have gone since, and serve pods again. It goes back once the agent publishes it. Of what a call of before may still take no pod
// gets any.
func (t *Term) Disown(v View, now Moment) (Status, bool) {
	if !t.Led(v.Status) || len(v.Status.Releasing)+len(v.Status.LeavingInterfaces) == 0 {
		return v.Status, false
	}
	next := v.Status.clone()
	doubtful := next.Releasing
	for _, id := range next.LeavingInterfaces {
		if e := next.findENI(id); e != nil {
			doubtful = append(doubtful, e.Addresses...)
		}
	}
	for _, p := range doubtful {
		t.quarantine(&next, p, now)
	}
	next.Releasing, next.LeavingInterfaces = nil, nil
	return t.endChange(v, next), true
}

// Take returns the status with the leader's epoch, and whether it is not there yet. It is written before the first address of the
// node is unassigned: until then an earlier leader may still write, by a describe of before the call.
func (t *Term) Take(v View) (Status, bool) {
	if v.Status.Epoch >= t.Epoch || IsBehind(v) { // with another revision the agent would take it for one of now
		return v.Status, false
	}
	return t.endChange(v, t.beginChange(v.Status)), true
}

// Unassignable returns what may be unassigned (S3): what is accepted, by whichever leader, and still shows, in a status that no
// earlier leader can write any more, and that its agent publishes still, having read of this leader (S9). What lies on an ENI that leaves
// goes with it.
func (t *Term) Unassignable(v View) map[string][]netip.Prefix {
	s := v.Status
	if s.Epoch != t.Epoch || !t.Heard(v.Spec) {
		return nil
	}
	accepted, published := setOf(s.Limits, s.Releasing), setOf(s.Limits, v.Spec.Release)
	list := map[string][]netip.Prefix{}
	for _, e := range s.ENIs {
		if e.State != Attached || slices.Contains(s.LeavingInterfaces, e.ID) {
			continue
		}
		for _, p := range e.Addresses {
			if accepted.hasAll(s.Limits, p) && t.mayTake(v, p, published) {
				list[e.ID] = append(list[e.ID], p)
			}
		}
	}
	return list
}

// Asked notes that the cloud is asked to unassign addresses, before it is. s is the status that Unassignable was asked of.
func (t *Term) Asked(s Status, addrs ...netip.Prefix) {
	t.beginChange(s)
	for _, p := range addrs {
		t.doubts[p]++
	}
}

// Answered notes that the outcome of one such call is known. Without it the call counts as under way.
func (t *Term) Answered(addrs ...netip.Prefix) {
	for _, p := range addrs {
		t.doubts[p] = max(0, t.doubts[p]-1)
	}
}

// Unassigned returns the status without accepted addresses that the cloud has taken, as an answer says. Of which a call may
// still be under way is quarantined: should it show up again it is not served (S7). An answer that comes when the address has gone
// already, and may be back, says nothing.
func (t *Term) Unassigned(v View, now Moment, addrs ...netip.Prefix) Status {
	next := t.beginChange(v.Status)
	for _, p := range addrs { // not accepted ones too: the status that lacks them may be there though its writer was not told
		t.taken[p] = max(t.taken[p], now.Mono+t.Lease.Settle)
	}
	accepted := setOf(next.Limits, next.Releasing)
	t.removeGone(&next, now, slices.DeleteFunc(slices.Clone(addrs), func(p netip.Prefix) bool { return !accepted.hasAny(next.Limits, p) }))
	return t.endChange(v, next)
}

func (t *Term) removeGone(next *Status, now Moment, addrs []netip.Prefix) {
	gone := setOf(next.Limits, addrs)
	for i := range next.ENIs {
		next.ENIs[i].Addresses = gone.without(next.Limits, next.ENIs[i].Addresses)
	}
	next.Releasing = gone.without(next.Limits, next.Releasing)
	left := next.presentAddrs()
	for _, p := range addrs {
		t.taken[p] = now.Mono + t.Lease.Settle
		deleteWithin(t.given, p)
		if latest(t.doubts, p) > 0 {
			t.quarantine(next, p, now)
		}
	}
	// A call for a whole prefix stays in doubt until all of the prefix is gone.
	maps.DeleteFunc(t.doubts, func(of netip.Prefix, _ int) bool {
		return gone.hasAny(next.Limits, of) && !left.hasAny(next.Limits, of)
	})
}

// quarantineUntil notes until when a late call may take the address.
func (s *Status) quarantineUntil(p netip.Prefix, until time.Time) {
	for i := range s.Quarantined {
		if q := &s.Quarantined[i]; q.Prefix == p {
			if until.After(q.Until) {
				q.Until = until
			}
			return
		}
	}
	s.Quarantined = append(s.Quarantined, Quarantined{p, until})
}

// Assigned returns the status with addresses that the cloud has given to an ENI, as an answer says. It needs nobody's word:
// facts are united. Quarantine stays.
func (t *Term) Assigned(v View, now Moment, id string, addrs ...netip.Prefix) Status {
	next := t.beginChange(v.Status)
	if e := next.findENI(id); e != nil {
		have := setOf(next.Limits, e.Addresses)
		for _, p := range addrs {
			t.given[p] = now.Mono + t.Lease.Settle
			deleteWithin(t.taken, p)
			maps.DeleteFunc(t.lacked, func(what thing, _ time.Duration) bool { return what.eni == id && what.prefix.Overlaps(p) })
			e.Addresses = append(e.Addresses, have.without(next.Limits, []netip.Prefix{p})...)
		}
	}
	return t.endChange(v, next)
}

// Made returns the status with a new ENI, with the serial that its token has; uid is the object's. One that is there already,
// since a describe showed it or a call was repeated after a crash, stays as it is.
func (t *Term) Made(v View, now Moment, uid string, e ENI) Status {
	next := t.beginChange(v.Status)
	t.made[e.ID] = now.Mono + t.Lease.Settle
	delete(t.lacked, thing{eni: e.ID})
	if next.findENI(e.ID) == nil {
		next.ENIs = append(next.ENIs, e)
	}
	if e.Token == Token(uid, next.Created) {
		next.Created++
	}
	return t.endChange(v, next)
}

// Deleted returns the status without an ENI that the cloud has deleted. A late call that names it finds nothing, so nothing
// of it is quarantined.
func (t *Term) Deleted(v View, id string) Status {
	next := t.beginChange(v.Status)
	if e := next.findENI(id); e != nil {
		gone := setOf(next.Limits, e.Addresses)
		next.Releasing = gone.without(next.Limits, next.Releasing)
	}
	next.ENIs = slices.DeleteFunc(next.ENIs, func(e ENI) bool { return e.ID == id })
	next.LeavingInterfaces = slices.DeleteFunc(next.LeavingInterfaces, func(of string) bool { return of == id })
	return t.endChange(v, next)
}
