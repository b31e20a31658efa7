package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Clouds differ in how many ENIs an instance may have: many (EC2, BCC), two, or only its primary
// one (Azure, GCP, BBC). The functions of this file let a sentence use what the instance can have.

// spareENIs is how many ENIs the instance may have besides its primary one.
func (n *node) spareENIs() int { return max(n.limits.ENIs-1, 0) }

// tooSmall tells whether, by its Limits, the instance lacks the capability.
func (n *node) tooSmall(c Capability) bool {
	switch c {
	case Blocks:
		return len(n.blockFamilies()) == 0
	case DualStack:
		return len(n.has) < 2
	case Secondary:
		return n.spareENIs() < 1
	case Pair:
		return n.spareENIs() < 2
	}
	return false
}

// primaryENI returns the node's primary ENI.
func (n *node) primaryENI() cloud.Interface {
	n.Helper()
	list := n.settledENIs()
	if len(list) == 0 || list[0].Index != 0 {
		n.Fatalf("Interfaces does not show the node's primary ENI first: %+v", list)
	}
	return list[0]
}

// eniWith returns an ENI with count units of each family more than before: a new one or, if the
// instance can have none, the primary one.
func (n *node) eniWith(count int) cloud.Interface {
	n.Helper()
	if n.spareENIs() > 0 {
		return n.createENI(count)
	}
	i := n.primaryENI()
	for _, f := range n.familiesOf(i) {
		if want := n.addressesIn(f, count); want > 0 {
			i.Addresses = union(i.Addresses, n.assignExactCount(i.ID, f, want)...)
		}
	}
	return i
}

// twoENIs returns an ENI with count units of each family, and another one: a new one with beside
// units, the primary one if the instance can have only one more, or none, with ID "", if the first is
// the primary one already.
func (n *node) twoENIs(beside, count int) (other, i cloud.Interface) {
	n.Helper()
	switch n.spareENIs() {
	case 0:
	case 1:
		other = n.primaryENI()
	default:
		other = n.createENI(beside)
	}
	return other, n.eniWith(count)
}

// checkUntouched fails the test unless the other ENI of twoENIs has what it had.
func (n *node) checkUntouched(other cloud.Interface) {
	n.Helper()
	if other.ID != "" {
		n.checkCarries(other.ID, other.Addresses)
	}
}

// discardENI deletes an ENI of eniWith or, if it is the primary one, unassigns its addresses.
func (n *node) discardENI(i cloud.Interface) {
	n.Helper()
	if i.Ours {
		n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
		return
	}
	now, _ := n.findENI(i.ID)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, now.Addresses))
}

// familiesOf returns the families in which an ENI can have addresses. If the cloud does not tell the
// primary address of a family, the ENI has none of it.
func (n *node) familiesOf(i cloud.Interface) []eni.Family {
	return slices.DeleteFunc(slices.Clone(n.has), func(f eni.Family) bool { return !i.Net(f).IsValid() })
}

// rangesOf returns the ranges that secondary addresses of an ENI in the subnet come from.
func (n *node) rangesOf(f eni.Family, subnet netip.Prefix) []netip.Prefix {
	all := slices.DeleteFunc(slices.Clone(n.Pods), func(p netip.Prefix) bool { return eni.FamilyOf(p.Addr()) != f })
	if len(all) == 0 {
		return []netip.Prefix{subnet}
	}
	return all
}

// primaryCost is by how much the primary address of a new ENI reduces Free.
func (n *node) primaryCost() int {
	if len(n.Pods) > 0 {
		return 0
	}
	return 1
}

// partialCount returns how many addresses of the family a change must have to be made of two
// requests, so that Partial can fail the second. It is 0 if that needs more than room.
func (n *node) partialCount(f eni.Family, room int) int {
	count := 0
	switch {
	case n.Chunk == 0:
		count = n.addressesIn(f, 2)
	case n.unitSize(f) > 1:
		count = n.unitSize(f) + 1 // blocks and single addresses go by requests of their own
	default:
		count = n.Chunk + 1
	}
	if count > room {
		return 0
	}
	return count
}
