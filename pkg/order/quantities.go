package order

import (
	"math"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Slots returns how many pods the addresses of ENIs are enough for: each pod gets its addresses of one ENI, so on
// each the scarcer family counts.
func Slots(families []eni.Family, enis [][]netip.Addr) int {
	sum := 0
	for _, addrs := range enis {
		least := math.MaxInt
		for _, f := range families {
			n := 0
			for _, a := range addrs {
				if eni.FamilyOf(a) == f {
					n++
				}
			}
			least = min(least, n)
		}
		if len(families) > 0 {
			sum += least
		}
	}
	return sum
}

// Have returns how many slots a node has for pods without a topology. What is to go back, is quarantined, reserved or
// held by others does not count.
func Have(spec Spec, status Status) int {
	out := setOf(status.Limits, status.Releasing, status.quarantinedPrefixes(), spec.Release, spec.Held)
	for _, r := range status.Reserved {
		out[r.Addr] = true
	}
	var enis [][]netip.Addr
	for _, e := range generalENIs(spec, status) {
		if slices.Contains(spec.NoLink, e.ID) {
			continue
		}
		enis = append(enis, slices.DeleteFunc(Addresses(status.Limits, e.Addresses...), func(a netip.Addr) bool { return out[a] }))
	}
	return Slots(spec.Families, enis)
}

// generalENIs returns the attached ENIs that carry pods without a topology.
func generalENIs(spec Spec, status Status) []ENI {
	first := spec.Pool.FirstIndex(status.Limits)
	return slices.DeleteFunc(slices.Clone(status.ENIs), func(e ENI) bool {
		return e.State != Attached || e.Index < first || e.Topology != "" || slices.Contains(status.LeavingInterfaces, e.ID)
	})
}

// Cap returns how many slots a node can have for pods without a topology: MaxAllocate and the places on its ENIs, without
// those kept for topologies (TopologyPlaces) and promised to pods of one. All are slots.
func Cap(spec Spec, status Status, promised int) int {
	free := spec.Pool
	free.MaxAllocate = 0
	n := max(0, free.Most(status.Limits, spec.Families, 0)-promised)
	if most := spec.Pool.MaxAllocate; most > 0 {
		n = min(n, most)
	}
	return n
}

// Short returns how many slots are still to be asked for. promised is as for Cap; coming is how many slots the cloud was
// asked for with the outcome open.
func Short(spec Spec, status Status, promised, coming int) int {
	return max(0, min(spec.Slots, Cap(spec, status, promised))-Have(spec, status)-coming)
}

// Satisfied tells whether a node has the slots that it asks for, and nothing is open. A node whose cap is below
// them is not satisfied, though nothing more is asked for: people are told the limit.
func Satisfied(spec Spec, status Status, coming int) bool {
	return Have(spec, status) >= spec.Slots && coming == 0
}

// Acceptable returns what of the spec's Release the operator may accept: what is attached, not accepted yet and not a pod's by
// a claim. A prefix goes as a whole. It may lie on an ENI that carries no pods any more.
func Acceptable(spec Spec, status Status) []netip.Prefix {
	if len(spec.Release) == 0 {
		return nil // nearly always, of each node many times a second while pods starve
	}
	accepted, attached := setOf(status.Limits, status.Releasing), status.attachedAddrs()
	claimed := addrSet{}
	for _, r := range status.Reserved {
		if r.named() {
			claimed[r.Addr] = true
		}
	}
	var list []netip.Prefix
	for _, p := range spec.Release {
		if attached.hasAll(status.Limits, p) && !accepted.hasAny(status.Limits, p) && !claimed.hasAny(status.Limits, p) {
			list = append(list, p)
		}
	}
	return list
}

// AcceptableInterfaces returns the ENIs whose deletion the operator may accept: every address on them has left service, by
// the agent's word or because it never was in.
func AcceptableInterfaces(spec Spec, status Status) []string {
	if len(spec.ReleaseInterfaces) == 0 {
		return nil
	}
	out := setOf(status.Limits, spec.Release, status.Releasing, status.quarantinedPrefixes())
	for _, r := range status.Reserved {
		delete(out, r.Addr)
	}
	var ids []string
	for _, id := range spec.ReleaseInterfaces {
		e := status.findENI(id)
		if e == nil || e.State != Attached || e.Index == 0 || slices.Contains(status.LeavingInterfaces, id) {
			continue
		}
		if !slices.ContainsFunc(e.Addresses, func(p netip.Prefix) bool { return !out.hasAll(status.Limits, p) }) {
			ids = append(ids, id)
		}
	}
	return ids
}
