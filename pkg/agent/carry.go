package agent

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// anew makes the cache from scratch: of what the cloud shows, of the old cache, nil if there is none, and
// of the pods that the kernel shows.
func anew(want ipam.State, old *ipam.State, owners map[netip.Addr]eni.Owner, now time.Duration) (*ipam.State, error) {
	known := map[netip.Addr]bool{}
	for _, line := range want.Addresses {
		known[line.Addr] = true
	}
	w := want
	if old != nil {
		kept := carriedOver(&want, old, now)
		owners = withTaken(owners, &want, old, kept)
		old = kept
		w.ENIs, w.Addresses = withOld(want, old, known)
	}
	return ipam.Merge(old, w, only(owners, known), now)
}

func only(owners map[netip.Addr]eni.Owner, known map[netip.Addr]bool) map[netip.Addr]eni.Owner {
	kept := map[netip.Addr]eni.Owner{}
	for addr, o := range owners {
		if known[addr] {
			kept[addr] = o
		}
	}
	return kept
}

// withTaken adds to the owners that the kernel shows those of the old cache whose lines were not
// carried over and whose addresses the node has all the same: an ADD writes the cache before the
// kernel, so what is not seen there may be a pod's that is about to start. What a pod that is gone
// has is reclaimed later. The kernel knows better, of the address and of the pod.
func withTaken(owners map[netip.Addr]eni.Owner, want, old, kept *ipam.State) map[netip.Addr]eni.Owner {
	type hold struct {
		eni.Key
		eni.Family
	}
	has, carried := map[hold]bool{}, knownOf(kept)
	for addr, o := range owners {
		has[hold{o.Key, eni.FamilyOf(addr)}] = true
	}
	there, all := knownOf(want), maps.Clone(owners)
	if all == nil {
		all = map[netip.Addr]eni.Owner{}
	}
	for _, line := range old.Addresses {
		if line.State != eni.Used || carried[line.Addr] || !there[line.Addr] || has[hold{line.Owner.Key, line.Family()}] {
			continue
		}
		if _, shown := all[line.Addr]; !shown {
			all[line.Addr] = *line.Owner
		}
	}
	return all
}

// carriedOver returns the old cache without what the new one leaves no room for, so that one
// record that is torn never keeps the rest from being built again. Nobody learns anything from
// the cloud before that is done, so it may be behind.
func carriedOver(want, old *ipam.State, now time.Duration) *ipam.State {
	old = old.Clone()
	at, primary := map[netip.Addr]string{}, map[netip.Addr]bool{}
	for _, nic := range want.ENIs {
		for _, n := range nic.Nets() {
			primary[n.Primary.Addr()] = true
		}
	}
	wantID, oldID := ids(want), ids(old)
	for _, line := range want.Addresses {
		at[line.Addr] = wantID[line.ENI]
	}
	var lost []netip.Addr
	replaced := replacedIn(want, old)
	for _, line := range old.Addresses {
		id := oldID[line.ENI]
		elsewhere := line.State == eni.Used && at[line.Addr] != "" && at[line.Addr] != id
		if elsewhere || primary[line.Addr] || slices.Contains(replaced, id) {
			lost = append(lost, line.Addr)
		}
	}
	old.MarkLost(lost, now)
	for _, id := range replaced {
		_ = old.DropLost(id) // all that it has is lost or on its way back
	}
	for i := range old.ENIs {
		for _, f := range movedOf(want, &old.ENIs[i]) {
			withoutFamily(old, i, f)
		}
	}
	return old
}

// movedOf returns the families that an ENI of the old cache surely has no more: the wanted one has
// no primary address of theirs, and has the former one among those for pods.
func movedOf(want *ipam.State, was *eni.Interface) (families []eni.Family) {
	at := slices.IndexFunc(want.ENIs, func(nic eni.Interface) bool { return nic.ID == was.ID })
	if at < 0 {
		return nil // what the cloud does not show at all is replacedIn's matter
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		now, before := want.ENIs[at].Net(f), was.Net(f)
		if !now.IsValid() && before.IsValid() && slices.ContainsFunc(want.Addresses, func(line eni.Address) bool { return line.Addr == before.Primary.Addr() }) {
			families = append(families, f)
		}
	}
	return families
}

// withoutFamily takes the family out of the cache's ENI at that position, with all its lines.
func withoutFamily(cached *ipam.State, at int, f eni.Family) {
	nic := &cached.ENIs[at]
	if f == eni.IPv4 {
		nic.V4 = eni.Net{}
	} else {
		nic.V6 = eni.Net{}
	}
	cached.Addresses = slices.DeleteFunc(cached.Addresses, func(line eni.Address) bool { return line.ENI == nic.Index && line.Family() == f })
}

// replacedIn returns the ENIs of the old cache that are surely gone: their link on the node is
// another ENI's by now, or their primary address is one for pods.
func replacedIn(want, old *ipam.State) (replaced []string) {
	devices, pods := map[string]bool{}, map[netip.Addr]bool{}
	for _, nic := range want.ENIs {
		devices[nic.Device] = true
	}
	for _, line := range want.Addresses {
		pods[line.Addr] = true
	}
	for _, nic := range old.ENIs {
		given := slices.ContainsFunc(nic.Nets(), func(n eni.Net) bool { return pods[n.Primary.Addr()] })
		if nic.Index > 0 && !hasENI(want, nic.ID) && (devices[nic.Device] || given) {
			replaced = append(replaced, nic.ID)
		}
	}
	return replaced
}

// withOld adds to the wanted cache what only the old one knows: pods may use it,
// and whether it is lost is for later ticks to find out. It notes in known what
// is listed. Where the cloud has given an old ENI's index to a new one, the old one gets
// another here: Merge gives it its own again.
func withOld(want ipam.State, old *ipam.State, known map[netip.Addr]bool) ([]eni.Interface, []eni.Address) {
	enis := slices.Clone(want.ENIs)
	taken, index := map[int]bool{}, map[int]int{} // by the old cache's index: the wanted one
	for _, nic := range slices.Concat(want.ENIs, old.ENIs) {
		taken[nic.Index] = true
	}
	for _, nic := range old.ENIs {
		was := nic.Index
		if at := slices.IndexFunc(enis, func(other eni.Interface) bool { return other.ID == nic.ID }); at >= 0 {
			index[was] = enis[at].Index
			enis[at] = widenedFor(enis[at], nic, addressesOf(old, was))
			continue
		}
		if slices.ContainsFunc(want.ENIs, func(other eni.Interface) bool { return other.Index == was }) {
			for nic.Index = 1; taken[nic.Index]; nic.Index++ {
			}
			taken[nic.Index] = true
		}
		index[was] = nic.Index
		enis = append(enis, nic)
	}
	lines := slices.Clone(want.Addresses)
	for _, line := range old.Addresses {
		if !known[line.Addr] {
			known[line.Addr] = true
			line.ENI = index[line.ENI]
			lines = append(lines, line)
		}
	}
	var sorted []eni.Address
	for _, nic := range enis {
		for _, line := range lines {
			if line.ENI == nic.Index {
				sorted = append(sorted, line)
			}
		}
	}
	return enis, sorted
}
