package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Clouds differ in how many ENIs an instance may have: many (EC2, BCC), two, or its own
// alone (Azure, GCP, BBC), whose addresses are all there is then. What follows lets a
// sentence take what the instance can have.

// spare is how many ENIs the instance may have besides its own.
func (n *node) spare() int { return max(n.limits.ENIs-1, 0) }

// tooSmall tells whether Limits say that the instance has no such capability.
func (n *node) tooSmall(c Capability) bool {
	switch c {
	case Blocks:
		return len(n.blocks()) == 0
	case DualStack:
		return len(n.has) < 2
	case Secondary:
		return n.spare() < 1
	case Pair:
		return n.spare() < 2
	}
	return false
}

// own returns the node's own ENI.
func (n *node) own() cloud.Interface {
	n.Helper()
	list := n.see()
	if len(list) == 0 || list[0].Index != 0 {
		n.Fatalf("Interfaces does not show the node's own ENI first: %+v", list)
	}
	return list[0]
}

// carrier returns an ENI that carries count units of each family more than before: a new
// one or, where the instance can have none, the node's own.
func (n *node) carrier(count int) cloud.Interface {
	n.Helper()
	if n.spare() > 0 {
		return n.create(count)
	}
	i := n.own()
	for _, f := range n.families(i) {
		if want := n.some(f, count); want > 0 {
			i.Addresses = with(i.Addresses, n.put(i.ID, f, want)...)
		}
	}
	return i
}

// pair returns an ENI with count units of each family and another one beside it, which
// has so many if it is a new one. It is the node's own where the instance can have but
// one more, and none, with ID "", where it is its only one.
func (n *node) pair(beside, count int) (other, i cloud.Interface) {
	n.Helper()
	switch n.spare() {
	case 0:
	case 1:
		other = n.own()
	default:
		other = n.create(beside)
	}
	return other, n.carrier(count)
}

// untouched fails the test unless the other ENI of a pair has what it had.
func (n *node) untouched(other cloud.Interface) {
	n.Helper()
	if other.ID != "" {
		n.carries(other.ID, other.Addresses)
	}
}

// discard takes an ENI of carrier away again, or what it carries.
func (n *node) discard(i cloud.Interface) {
	n.Helper()
	if i.Ours {
		n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
		return
	}
	now, _ := n.eni(i.ID)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, now.Addresses))
}

// families are those in which an ENI can have addresses: one whose primary address the
// cloud does not tell has none of the family.
func (n *node) families(i cloud.Interface) []eni.Family {
	return slices.DeleteFunc(slices.Clone(n.has), func(f eni.Family) bool { return !i.Net(f).IsValid() })
}

// ranges are where an ENI in a subnet gets its secondary addresses of the family from.
func (n *node) ranges(f eni.Family, subnet netip.Prefix) []netip.Prefix {
	all := slices.DeleteFunc(slices.Clone(n.Pods), func(p netip.Prefix) bool { return eni.FamilyOf(p.Addr()) != f })
	if len(all) == 0 {
		return []netip.Prefix{subnet}
	}
	return all
}

// primaries is how many addresses of Free the primary address of an ENI takes.
func (n *node) primaries() int {
	if len(n.Pods) > 0 {
		return 0
	}
	return 1
}

// parts returns how many addresses of the family a change needs that Partial can part
// in two, 0 if no change of so few is made of two requests.
func (n *node) parts(f eni.Family, room int) int {
	count := 0
	switch {
	case n.Chunk == 0:
		count = n.some(f, 2)
	case n.unit(f) > 1:
		count = n.unit(f) + 1 // blocks and single addresses go by requests of their own
	default:
		count = n.Chunk + 1
	}
	if count > room {
		return 0
	}
	return count
}
