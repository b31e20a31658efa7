package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// carried returns the old book without what the wanted one leaves no room for, so that one
// record that is torn never keeps the rest from being made anew. Nobody learns anything from
// the cloud before that is done, so it may be behind.
func carried(want, old *ipam.State, now time.Duration) *ipam.State {
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
	old.Lose(lost, now)
	for _, id := range replaced {
		_ = old.DropLost(id) // all that it has is lost or on its way back
	}
	return old
}

// replacedIn returns the ENIs of the old book that are surely gone: their link on the node is
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

// withOld adds to the wanted book what only the old one knows: pods may use it,
// and whether it is lost is for later ticks to find out. It notes in known what
// is listed. Where the cloud has given an old ENI's index to a new one, the old one gets
// another here: Merge gives it its own again.
func withOld(want ipam.State, old *ipam.State, known map[netip.Addr]bool) ([]eni.Interface, []eni.Address) {
	enis := slices.Clone(want.ENIs)
	taken, index := map[int]bool{}, map[int]int{} // by the old book's index: the wanted one
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
