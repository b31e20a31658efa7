package order

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// View is a copy of the object as one side read it, with both halves of one resourceVersion.
type View struct {
	Spec   Spec
	Status Status
}

// Begin returns the spec with which an agent begins after a start: nothing is adopted before it is written. Its boot id makes
// what an agent of before the boot has sent conflict.
func Begin(v View, boot string) Spec {
	next := v.Spec
	next.Boot = boot
	return next
}

// Publish returns the spec with the addresses that go back (S1): those that are releasing in the node state, whole prefixes
// only, and what was there before for as long as the status shows it, since the agent forgets only after the other side. It is
// written with the view's resourceVersion.
func Publish(state *ipam.State, v View) Spec {
	releasing, known := addrSet{}, addrSet{}
	for _, a := range state.Addresses {
		known[a.Addr] = true
		releasing[a.Addr] = a.State == eni.Releasing
	}
	next, l := v.Spec, v.Status.Limits
	next.Release = nil
	shown := v.Status.presentAddrs()
	for _, p := range notServed(state, v, v.Spec.Release) {
		if shown.hasAny(l, p) || known.hasAny(l, p) {
			next.Release = append(next.Release, p)
		}
	}
	listed := setOf(l, next.Release)
	for _, e := range v.Status.ENIs {
		for _, p := range e.Addresses {
			if e.State == Attached && releasing.hasAll(l, p) && !listed.hasAny(l, p) {
				next.Release = append(next.Release, p)
			}
		}
	}
	// What is accepted and is not in service it lets go as well, wherever that was agreed (S9).
	for _, p := range notServed(state, v, v.Status.Releasing) {
		if len(state.Damaged) == 0 && shown.hasAny(l, p) && !setOf(l, next.Release).hasAny(l, p) {
			next.Release = append(next.Release, p)
		}
	}
	next.ReleaseInterfaces = slices.DeleteFunc(unservedInterfaces(state, v), func(id string) bool { return v.Status.findENI(id) == nil })
	next.SeenRevision = 0
	return next
}

// notServed returns what of a list of what goes back is not in service. What is was withdrawn, and the object is one of before that: the store
// of the objects was put back.
func notServed(state *ipam.State, v View, list []netip.Prefix) []netip.Prefix {
	serves := addrSet{}
	for _, a := range state.Addresses {
		serves[a.Addr] = a.State != eni.Releasing
	}
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return serves.hasAny(v.Status.Limits, p) })
}

// unservedInterfaces returns the same of the ENIs whose deletion the spec asks for.
func unservedInterfaces(state *ipam.State, v View) []string {
	serving := servingInterfaces(state)
	return slices.DeleteFunc(slices.Clone(v.Spec.ReleaseInterfaces), func(id string) bool { return serving[id] })
}

// servingInterfaces tells by id which ENIs have something in service.
func servingInterfaces(state *ipam.State) map[string]bool {
	serving := map[string]bool{}
	for _, nic := range state.ENIs {
		serving[nic.ID] = slices.ContainsFunc(state.Addresses, func(a eni.Address) bool {
			return a.ENI == nic.Index && a.State != eni.Releasing && !a.Lost
		})
	}
	return serving
}

// Serves tells whether the ENI has something in service.
func Serves(state *ipam.State, id string) bool { return servingInterfaces(state)[id] }

// PublishInterfaces returns the spec with ENIs whose deletion the agent asks for: all addresses on each are in Release.
func PublishInterfaces(v View, next Spec, ids ...string) Spec {
	next.ReleaseInterfaces = slices.Clone(next.ReleaseInterfaces)
	listed := setOf(v.Status.Limits, next.Release)
	for _, id := range ids {
		e := v.Status.findENI(id)
		if e == nil || slices.Contains(next.ReleaseInterfaces, id) {
			continue
		}
		if !slices.ContainsFunc(e.Addresses, func(p netip.Prefix) bool { return !listed.hasAll(v.Status.Limits, p) }) {
			next.ReleaseInterfaces = append(next.ReleaseInterfaces, id)
		}
	}
	return next
}

// Withdraw returns the spec without those of the addresses that can still be taken back (S4), whole prefixes only, and which those
// are. They stay releasing until Confirmed says so of the write's answer. An ENI of which something is taken back stays.
func Withdraw(v View, next Spec, addrs []netip.Addr) (Spec, []netip.Prefix) {
	wanted := addrSet{}
	wanted.add(addrs)
	l := v.Status.Limits
	published, late := setOf(l, v.Spec.Release), setOf(l, v.Status.Releasing, v.Status.quarantinedPrefixes())
	attached := v.Status.attachedAddrs()
	var back []netip.Prefix
	keep := func(p netip.Prefix) bool {
		// What the object does not have yet is in a write whose outcome is not known, if in any.
		may := wanted.hasAll(l, p) && published.hasAll(l, p) && attached.hasAll(l, p) && !late.hasAny(l, p)
		if may {
			back = append(back, p)
		}
		return may
	}
	next.Release = slices.DeleteFunc(slices.Clone(next.Release), keep)
	returned := setOf(l, back)
	next.ReleaseInterfaces = slices.DeleteFunc(slices.Clone(next.ReleaseInterfaces), func(id string) bool {
		e := v.Status.findENI(id)
		return e != nil && slices.ContainsFunc(e.Addresses, func(p netip.Prefix) bool { return returned.hasAny(l, p) })
	})
	return next, back
}

// Confirmed returns those of withdrawn prefixes that may be free again: the answer of the write that withdrew them, and nothing
// else, shows that the operator has not accepted them and can't any more (S4).
func Confirmed(answer View, withdrawn []netip.Prefix) []netip.Addr {
	l := answer.Status.Limits
	out := setOf(l, answer.Spec.Release, answer.Status.Releasing, answer.Status.quarantinedPrefixes())
	for _, id := range answer.Status.LeavingInterfaces {
		if e := answer.Status.findENI(id); e != nil {
			out.add(Addresses(l, e.Addresses...))
		}
	}
	attached := answer.Status.attachedAddrs()
	var free []netip.Addr
	for _, p := range withdrawn {
		if attached.hasAll(l, p) && !out.hasAny(l, p) {
			free = append(free, expandPrefix(l, p)...)
		}
	}
	return free
}

// Head is the latest status that the node cache has seen.
type Head struct {
	Revision int64
	Epoch    int64 // of the leader that wrote it, 0 if nobody knows any more
}

// Stale tells whether a status is from before the one that the node cache has seen (S5), or goes on from one of before: another leader has
// written what has that number in it. The object's store was put back then.
func Stale(head Head, s Status) bool {
	if s.Revision < head.Revision {
		return true
	}
	writer := s.writerOf(head.Revision)
	return head.Epoch != 0 && writer != 0 && writer != head.Epoch
}

// Seen returns the spec that tells the operator of a stale status, or of a spec of before: until it has described, nothing is adopted or
// dropped. What serves pods goes back no more, whatever the spec of before says; where the node state is not there, or is damaged, that may be all.
func Seen(state *ipam.State, v View, head Head) Spec {
	next := v.Spec
	if next.Release, next.ReleaseInterfaces = nil, nil; state != nil && len(state.Damaged) == 0 {
		next.Release, next.ReleaseInterfaces = notServed(state, v, v.Spec.Release), unservedInterfaces(state, v)
	}
	seen := head.Revision
	if Stale(head, v.Status) {
		seen = max(seen, v.Status.Revision+1) // a leader may have written on from what was put back
	}
	next.SeenRevision = min(seen, MostSeen)
	return next
}
