package pool

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// inReleaseOrder returns the ENIs in the order in which their slots are released: those of subnets whose addresses
// others wait for come first, then the newest, and last those that stay for what is reserved on them.
func (l *ledger) inReleaseOrder() []*nic {
	order := slices.Clone(l.nics)
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b *nic) int { return cmp.Compare(a.releaseRank(), b.releaseRank()) })
	return order
}

// releaseRank is low for an ENI whose slots are released early.
func (n *nic) releaseRank() int {
	switch {
	case n.isSpared():
		return 0
	case slices.ContainsFunc(n.Addresses, func(a Address) bool { return a.Reservation != nil && !a.IsSetAside() }):
		return 2
	}
	return 1
}

// shrink plans what is released: free slots above the ceiling, of ENIs in the order of inReleaseOrder,
// whole ENIs where nothing of them is left, and addresses that lack their partner of the other
// family and are not to get it. As long as the target is not reached it releases nothing.
//
// What a plan brings in blocks makes nothing superfluous before it is there: a subnet without a whole block gives a few
// single addresses in its place, and pods wait for those that would have gone.
func (l *ledger) shrink() {
	surplus := l.present() - l.brought() - l.ceiling - l.c.slotsBeforehand(l.s.Limits, l.s.Families)
	waits := func(n *nic) bool { return n.uneven() > 0 } // for partners, which may still come
	if l.present() < l.target || l.owned < l.ceiling && slices.ContainsFunc(l.nics, waits) {
		return
	}
	for _, n := range l.inReleaseOrder() {
		size := n.present()
		switch {
		case n.Busy || n.Stays:
		case l.isReturnable(n) && size <= max(0, surplus):
			n.deleted, n.slotsReleased = true, size
		default:
			for n.releaseSlots(min(surplus-n.slotsReleased, n.present()-l.slotsKept(n)), scarceFamily(l.s.Families)) {
			}
		}
		surplus -= n.slotsReleased
	}
	for _, n := range l.nics {
		if !n.Busy && !n.Stays && !n.deleted {
			n.releaseUnpaired()
		}
	}
}

// brought returns how many slots the plan brings in blocks.
func (l *ledger) brought() int {
	blocks := slices.ContainsFunc(l.s.Families, func(f eni.Family) bool { return unitSize(l.s.Limits, f) > 1 })
	if !blocks {
		return 0
	}
	sum := 0
	for _, s := range l.created {
		sum += s.Count
	}
	for _, n := range l.nics {
		sum += n.present() - n.fewest(func(t tally) int { return t.there() - t.assign })
	}
	return sum
}

// slotsKept returns how many slots an ENI keeps whatever the target is.
func (l *ledger) slotsKept(n *nic) int {
	if l.isBeforehand(n) {
		return 1
	}
	return 0
}

// returnENIs plans which ENIs of a burstable node are deleted: the newest ones, as long as they
// are idle and the target stays reached. Single addresses are never released.
func (l *ledger) returnENIs() {
	surplus := l.present() - l.target
	for _, n := range slices.Backward(l.nics) {
		size := n.present()
		if !l.c.ReturnENIs || len(l.created) > 0 || !l.isReturnable(n) || size > surplus {
			return
		}
		n.deleted, n.slotsReleased = true, size
		surplus -= size
	}
}

// fillENIs makes every ENI of a burstable node full. Releasing addresses take room until they are
// gone. If the newest ENI is idle and may be deleted nothing is filled: the other ENIs, once full,
// would make it superfluous, and what was assigned would be released at once.
func (l *ledger) fillENIs() {
	for _, n := range slices.Backward(l.nics) {
		if n.deleted {
			continue
		}
		if l.c.ReturnENIs && l.isReturnable(n) {
			return
		}
		break
	}
	for _, n := range l.nics {
		if !n.deleted {
			n.filled += l.addSlots(n, l.most-l.owned, true)
		}
	}
}

// isReturnable tells whether the ENI may be deleted as far as it alone is concerned:
// made by enipool, not the primary ENI, not the oldest that carries pods, and idle. Idle means
// that no address of any family is a pod's, enipool's or others', or is cooling after one or reserved for one. An ENI that
// gets more in this plan is not deleted, though a block may bring the others more than they need.
func (l *ledger) isReturnable(n *nic) bool {
	mine := n.Index > 0 && !n.Keep && n != l.nics[0] && !l.isBeforehand(n)
	used := slices.ContainsFunc(n.Addresses, func(a Address) bool {
		return a.State == eni.Used || a.State == eni.Cooling || a.State == eni.Held || a.State == eni.Reserved
	})
	return mine && !used && !n.Busy && !n.Stays && len(n.Coming) == 0 && !n.growsInBlocks()
}

// releaseSlots plans to release up to k whole slots, none for k below 1. Blocks go whole or not at all, and those of
// IPv4 decide how many slots go: a small part of a block of IPv6 is enough for the ENI. It returns whether
// any address is released; then calling it again may release more, because what a block kept may have lost
// its partners.
func (n *nic) releaseSlots(k int, scarce eni.Family) bool {
	pairs, before, released := n.freeSlots(), n.present(), n.released()
	if k = min(k, pairs); k <= 0 {
		return false
	}
	give := func(t *tally) {
		if !t.inBlocks() {
			t.release += k
			return
		}
		t.releaseBlocks(min(t.there()-before, t.free-t.release-pairs) + k)
	}
	// First the family that decides: whole blocks may be fewer slots than k, and the other family
	// must not give up partners of what stays.
	for i := range n.tallies {
		if t := &n.tallies[i]; t.family == scarce {
			if give(t); t.inBlocks() {
				k = before - min(before, t.there())
			}
		}
	}
	for i := range n.tallies {
		if t := &n.tallies[i]; t.family != scarce {
			give(t)
		}
	}
	n.slotsReleased += before - n.present()
	return n.released() > released
}

func (n *nic) released() int {
	sum := 0
	for _, t := range n.tallies {
		sum += t.release
	}
	return sum
}

// releaseUnpaired plans to release free addresses for which the ENI has no partner
// in the other family: none that is there, none on its way, and none that a pod
// uses whose own partner is missing.
func (n *nic) releaseUnpaired() {
	slots, present, pairs := n.slots(), n.present(), n.freeSlots()
	for i := range n.tallies {
		t := &n.tallies[i]
		k := max(0, min(t.owned()-slots, t.there()-present, t.free-t.release-pairs))
		if t.inBlocks() {
			t.releaseBlocks(k)
		} else {
			t.release += k
		}
	}
}

// addrsToRelease returns the addresses to release, in the order of the node state: of each
// family the last ones of those that are free, for pods get the first.
func (n *nic) addrsToRelease() []netip.Addr {
	goes := n.chosenBy(func(t *tally) int { return t.release }, func(b *block) bool { return b.released })
	var list []netip.Addr
	for _, a := range slices.Backward(n.Addresses) {
		if a.State == eni.Free && !a.Lost && (n.deleted || goes(a)) {
			list = append(list, a.Addr)
		}
	}
	slices.Reverse(list)
	return list
}

// addrsToRestore returns the addresses whose release is undone, in the order of the node state.
func (n *nic) addrsToRestore() []netip.Addr {
	comes := n.chosenBy(func(t *tally) int { return t.restore }, func(b *block) bool { return b.restored })
	var list []netip.Addr
	for _, a := range n.Addresses {
		if a.State == eni.Releasing && !a.Committed && !a.Lost && comes(a) {
			list = append(list, a.Addr)
		}
	}
	return list
}

// chosenBy returns a function that tells of one address after the other, each asked for once and in order,
// whether the plan has it: the first ones of a family up to count, or those of the blocks that are picked.
func (n *nic) chosenBy(count func(*tally) int, picked func(*block) bool) func(Address) bool {
	left := map[eni.Family]int{}
	blocks := map[netip.Prefix]bool{}
	bits := map[eni.Family]int{}
	for i := range n.tallies {
		t := &n.tallies[i]
		left[t.family] = count(t)
		if !t.inBlocks() {
			continue
		}
		bits[t.family] = t.bits
		for k := range t.blocks {
			blocks[t.blocks[k].bits] = picked(&t.blocks[k])
		}
	}
	// Blocks go by which they are, single addresses by how many: those of a family are all the same.
	return func(a Address) bool {
		f := a.Family()
		if b, in := bits[f]; in {
			prefix, _ := a.Addr.Prefix(b)
			return blocks[prefix]
		}
		left[f]--
		return left[f] >= 0
	}
}
