package order

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
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
		next.Releasing = partsOf(next.Limits, next.Releasing, func(a netip.Addr) bool { return published[a] })
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
		unknown := setOf(next.Limits, e.Addresses).without(next.Limits, notIn(shown, e.Addresses))
		missing, moved := t.missingFrom(next.Limits, *e, d)
		if len(moved) > 0 { // to another ENI of the node, from which it must not go too
			e.Addresses, changed = setOf(next.Limits, moved).without(next.Limits, e.Addresses), true
		}
		for _, p := range missing {
			if lacks(thing{e.ID, p}) {
				gone = append(gone, p)
			} else {
				doubtful = append(doubtful, p)
			}
		}
		for _, p := range unknown {
			// One that was taken and assigned again a moment ago may be shown where it was.
			known := func(a netip.Addr) bool {
				single := netip.PrefixFrom(a, a.BitLen())
				return latest(t.taken, single) <= d.Began.Mono && latest(t.given, single) <= d.Began.Mono
			}
			if fresh := partOf(next.Limits, p, known); len(fresh) > 0 {
				e.Addresses, changed = append(e.Addresses, fresh...), true
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

// Reattached returns the status with a detached ENI that a describe shows attached again, with the index. What it had is from before: of
// what the describe lacks another node may have some by now, so no pod gets that until a describe a consistency window later tells.
func (t *Term) Reattached(v View, d Description, id string, index int) Status {
	next := t.beginChange(v.Status)
	e := next.findENI(id)
	if e == nil || e.State != Detached {
		return v.Status
	}
	e.State, e.Index = Attached, index
	missing, moved := t.missingFrom(next.Limits, *e, d)
	e.Addresses = setOf(next.Limits, moved).without(next.Limits, e.Addresses)
	for _, p := range missing {
		next.quarantineUntil(p, d.Began.Wall.Add(t.Lease.Settle))
	}
	return t.endChange(v, next)
}

// addrs returns the addresses that the describe shows on any ENI.
func (d Description) addrs(l eni.Limits) addrSet {
	set := addrSet{}
	for _, list := range d.Shown {
		set.add(Addresses(l, list...))
	}
	return set
}

// missingFrom returns what a describe should show of an ENI and does not, and of that what it shows on another one. The form is nobody's
// business: single addresses that fill a prefix may be shown as that, and a prefix as single ones. Of a prefix of which some is shown it is
// the other addresses.
func (t *Term) missingFrom(l eni.Limits, e ENI, d Description) (missing, moved []netip.Prefix) {
	suspects := notIn(e.Addresses, d.Shown[e.ID])
	if len(suspects) == 0 {
		return nil, nil
	}
	here, anywhere := setOf(l, d.Shown[e.ID]), d.addrs(l)
	suspects = partsOf(l, suspects, func(a netip.Addr) bool {
		return !here[a] && latest(t.given, netip.PrefixFrom(a, a.BitLen())) <= d.Began.Mono
	})
	return anywhere.without(l, suspects), partsOf(l, suspects, func(a netip.Addr) bool { return anywhere[a] })
}

// notIn returns those of the prefixes that do not stand in the other list as they are.
func notIn(list, other []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return slices.Contains(other, p) })
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
