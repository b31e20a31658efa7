package order

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
)

// Hear returns the spec with the number of the leader whose status its agent has read, where something is to go back. No backup that a new
// leader finds has that leader's number: with it the spec is what the agent says now. Where nothing is to go back the number alone is worth no write.
func Hear(v View, next Spec) Spec {
	if len(next.Release)+len(next.ReleaseInterfaces)+len(v.Status.Releasing)+len(v.Status.LeavingInterfaces) > 0 {
		next.SeenEpoch = v.Status.Epoch
	}
	return next
}

// Heard tells whether the agent has read what this leader has written, or is of a release that does not say (S9).
func (t *Term) Heard(s Spec) bool { return s.SeenEpoch == t.Epoch || s.SeenEpoch == 0 }

// Awaits tells whether something is to go back and the agent has yet to say that it has read of this leader. It does when it finds the leader's
// number in the status (Take).
func (t *Term) Awaits(v View) bool {
	if t.Heard(v.Spec) {
		return false
	}
	return len(v.Status.Releasing)+len(v.Status.LeavingInterfaces) > 0 ||
		len(Acceptable(v.Spec, v.Status))+len(AcceptableInterfaces(v.Spec, v.Status)) > 0
}

// IsSilent tells whether what leaders before this one have accepted can have no effect any more, though it is not gone: the agent has not read of
// this one, which has thus asked for none of it, and what those before had sent is over.
func (t *Term) IsSilent(s Spec, now Moment) bool {
	return !t.Heard(s) && now.Mono >= t.Acquired+t.Lease.Fence
}

// mayTake tells whether what is accepted may be taken as far as the agent's word goes: it has read of this leader, and publishes it still. What a
// backup says was accepted, and has been back since, it does not. One that is to call the cloud itself publishes nothing, and says that it has
// read only while it serves nothing of it.
func (t *Term) mayTake(v View, p netip.Prefix, published addrSet) bool {
	epoch := v.Spec.SeenEpoch
	return epoch == 0 || epoch == t.Epoch && (v.Spec.Mode == Self || published.hasAll(v.Status.Limits, p))
}

// Deletable returns the ids of ENIs that may be detached and deleted: those whose deletion is accepted, by whichever leader, in a status that no
// earlier leader can write any more, and of which the agent says still that nothing serves.
func (t *Term) Deletable(v View) (ids []string) {
	if v.Status.Epoch != t.Epoch || !t.Heard(v.Spec) {
		return nil
	}
	published := setOf(v.Status.Limits, v.Spec.Release)
	for _, id := range v.Status.LeavingInterfaces {
		e := v.Status.findENI(id)
		if e == nil {
			continue
		}
		serves := slices.ContainsFunc(e.Addresses, func(p netip.Prefix) bool { return !t.mayTake(v, p, published) })
		if !serves || slices.Contains(v.Spec.ReleaseInterfaces, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// HearLeaving returns the spec of an agent that is to call the cloud itself, and publishes nothing: with the leader's number, once nothing of what
// is accepted is in service. state is nil where there is none.
func HearLeaving(state *ipam.State, v View) Spec {
	next := v.Spec
	next.Mode, next.Release, next.ReleaseInterfaces = Self, nil, nil
	if state != nil {
		serving := servingInterfaces(state)
		serves := func(id string) bool { return serving[id] }
		if len(state.Damaged) > 0 || len(notServed(state, v, v.Status.Releasing)) < len(v.Status.Releasing) || slices.ContainsFunc(v.Status.LeavingInterfaces, serves) {
			return next
		}
	}
	return Hear(v, next)
}
