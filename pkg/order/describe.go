package order

import (
	"net/netip"
	"slices"
	"time"
)

// Description is what the cloud shows of a node's addresses, as one describe has it.
type Description struct {
	Began Moment                    // when it was asked for
	Shown map[string][]netip.Prefix // secondary addresses by ENI id, of every attached ENI that it shows
	Loose []string                  // ids of ENIs that it shows attached nowhere
	// Partial: it has something of which nobody can tell what it is, so that what it lacks may be that.
	Partial bool
}

// Described returns the status with what a describe shows, and whether anything changes. It is written with the view's
// resourceVersion. What the leader did itself counts more than a describe that began within settle of it, and of what
// leaders before it did only one tells the truth that began settle after the lease was theirs no more (S8). What it shows
// counts at once, what it lacks only when one that began settle before has lacked it too. Describes come in the order in
// which they began: an older one than the last changes nothing.
func (t *Term) Described(v View, now Moment, d Description) (Status, bool) {
	if !t.Led(v.Status) || !t.Lease.MayDescribe(d.Began.Mono, t.Acquired) || d.Began.Mono < t.described || !t.Knows(v, now, d.Began) {
		return v.Status, false
	}
	next := t.beginChange(v.Status)
	if IsBehind(v) {
		// What was accepted once may have gone and come back since: what its agent does not publish serves pods.
		published := setOf(next.Limits, v.Spec.Release)
		next.Releasing = slices.DeleteFunc(next.Releasing, func(p netip.Prefix) bool { return !published.hasAny(next.Limits, p) })
	}
	lacks := t.compareWith(d)
	var gone, doubtful []netip.Prefix
	changed := IsBehind(v) // which the agent waits for (S5)
	for i := range next.ENIs {
		e := &next.ENIs[i]
		shown, known := d.Shown[e.ID]
		if e.State != Attached || !known && t.made[e.ID] > d.Began.Mono {
			continue
		}
		switch {
		case known:
		case slices.Contains(d.Loose, e.ID), lacks(thing{eni: e.ID}):
			e.State, changed = Detached, true // by somebody else: its pods' addresses are lost
			continue
		default:
			doubtful = append(doubtful, e.Addresses...)
			continue
		}
		for _, p := range t.missingFrom(e.Addresses, shown, d.Began.Mono) {
			switch {
			case d.shows(p): // on another ENI of the node, from which it must not go too
				e.Addresses, changed = slices.DeleteFunc(e.Addresses, func(q netip.Prefix) bool { return q == p }), true
			case lacks(thing{e.ID, p}):
				gone = append(gone, p)
			default:
				doubtful = append(doubtful, p)
			}
		}
		for _, p := range shown {
			// One that was taken and assigned again a moment ago may be shown where it was.
			if !slices.Contains(e.Addresses, p) && t.taken[p] <= d.Began.Mono && t.given[p] <= d.Began.Mono {
				e.Addresses, changed = append(e.Addresses, p), true
			}
		}
	}
	if len(gone) > 0 {
		t.removeGone(&next, now, gone)
	}
	// Accepted, and not there any more when an earlier leader was stopped.
	left := next.presentAddrs()
	vanished := slices.DeleteFunc(slices.Clone(next.Releasing), func(p netip.Prefix) bool { return left.hasAny(next.Limits, p) })
	if len(vanished) > 0 {
		t.removeGone(&next, now, vanished)
	}
	ended := t.endQuarantines(&next, d)
	// The agent adopts a status that is ahead of it again, also what an old one had. Until it is known whether that is there
	// no pod gets it.
	if IsBehind(v) {
		for _, p := range doubtful {
			next.quarantineUntil(p, d.Began.Wall.Add(t.Lease.Settle))
		}
	}
	if !changed && !ended && len(gone)+len(vanished) == 0 {
		return v.Status, false
	}
	return t.endChange(v, next), true
}

// shows tells whether the describe shows the prefix on any ENI.
func (d Description) shows(p netip.Prefix) bool {
	for _, list := range d.Shown {
		if slices.Contains(list, p) {
			return true
		}
	}
	return false
}

// missingFrom returns the addresses that a describe should show and does not.
func (t *Term) missingFrom(have, shown []netip.Prefix, began time.Duration) (gone []netip.Prefix) {
	for _, p := range have {
		if !slices.Contains(shown, p) && t.given[p] <= began {
			gone = append(gone, p)
		}
	}
	return gone
}

// Follows returns whether a status may follow another, as the API server checks it: what only grows does, and
// the revision does with every change of what an agent adopts.
func Follows(old, next Status) bool {
	grows := next.Epoch >= old.Epoch && next.Created >= old.Created && next.Revision >= old.Revision
	return grows && (next.Revision > old.Revision || old.adoptsAs(next))
}

// adoptsAs tells whether an agent makes the same of both.
func (s Status) adoptsAs(o Status) bool {
	same := func(a, b ENI) bool {
		return a.ID == b.ID && a.State == b.State && slices.Equal(a.Addresses, b.Addresses)
	}
	return slices.EqualFunc(s.ENIs, o.ENIs, same) && slices.Equal(s.Releasing, o.Releasing) && slices.Equal(s.Quarantined, o.Quarantined) &&
		slices.Equal(s.Reserved, o.Reserved) && slices.Equal(s.LeavingInterfaces, o.LeavingInterfaces)
}
