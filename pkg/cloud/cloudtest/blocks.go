package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// inBlocks has what the comments of cloud.Cloud say about addresses that come in blocks.
var inBlocks = []sentence{
	{"a block is Size addresses whose first Bits bits are the same", []Capability{Blocks}, sharesBits},
	{"AssignAddresses puts blocks, and single addresses for the rest", []Capability{Blocks}, putsTheRest},
	{"AssignAddresses puts single addresses where the subnet has no whole block", []Capability{Blocks, Breaking}, putsSingles},
	{"CreateInterface begins with single addresses where the subnet has no whole block", []Capability{Blocks, Breaking, Secondary}, beginsWithSingles},
	{"a single address takes as much of the limit as a block", []Capability{Blocks, Quotas}, singlesTakeRoom},
	{"UnassignAddresses takes blocks and single addresses", []Capability{Blocks}, takesBoth},
	{"UnassignAddresses refuses a part of a block and does nothing", []Capability{Blocks}, refusesAPart},
}

// blockFamilies are the families whose addresses come in blocks of more than one.
func (n *node) blockFamilies() []eni.Family {
	return slices.DeleteFunc(slices.Clone(n.has), func(f eni.Family) bool { return n.unitSize(f) == 1 })
}

// bareENI returns an ENI that has only its primary addresses.
func (n *node) bareENI() cloud.Interface {
	n.Helper()
	return n.eniWith(0)
}

// assignExactCount is AssignAddresses of that many addresses, all of which must come.
func (n *node) assignExactCount(id string, f eni.Family, count int) []netip.Addr {
	n.Helper()
	addrs, err := n.Cloud.AssignAddresses(n.ctx, id, f, count)
	n.must(err)
	if len(addrs) != count {
		n.Fatalf("AssignAddresses of %d %s addresses = %v", count, f, addrs)
	}
	return addrs
}

func sharesBits(node *node) {
	iface := node.bareENI()
	for _, f := range node.blockFamilies() {
		for range node.addressesIn(f, 2) / node.unitSize(f) {
			block := node.assignExactCount(iface.ID, f, node.unitSize(f))
			if len(node.splitUnits(block)) != 1 {
				node.Errorf("a block has %v, which do not share %d bits", block, node.limits.Block(f).Bits)
			}
			if slices.ContainsFunc(node.splitUnits(iface.Addresses), func(unit []netip.Addr) bool { return len(node.splitUnits(union(unit, block...))) == 1 }) {
				node.Errorf("two blocks share their bits: %v and one of %v", block, iface.Addresses)
			}
			iface.Addresses = union(iface.Addresses, block...)
		}
	}
	node.checkCarries(iface.ID, iface.Addresses)
}

func putsTheRest(node *node) {
	for _, f := range node.blockFamilies() {
		if node.mostInUnits(f) == node.unitSize(f) {
			continue // there is no room for a block and one more
		}
		i := node.bareENI()
		addrs := node.assignExactCount(i.ID, f, node.unitSize(f)+1)
		if len(node.splitUnits(addrs)) != 2 {
			node.Errorf("of %d addresses %d came together", node.unitSize(f)+1, len(node.splitUnits(addrs)[0]))
		}
		node.checkCarries(i.ID, addrs)
		node.discardENI(i)
	}
}

// putsSingles does not say how many come: that depends on the limit of the ENI.
func putsSingles(node *node) {
	i := node.bareENI()
	node.Break(node.first)
	f := node.blockFamilies()[0]
	addrs, err := node.Cloud.AssignAddresses(node.ctx, i.ID, f, node.unitSize(f))
	if err != nil {
		node.checkKind(err, cloud.ErrLimit, cloud.ErrSubnetFull)
	}
	if len(addrs) == 0 || len(addrs) > node.unitSize(f) {
		node.Errorf("a subnet without whole blocks gave %v", addrs)
	}
	node.checkCarries(i.ID, addrs)
}

func beginsWithSingles(node *node) {
	node.Break(node.first)
	i := node.createENI(2)
	for _, f := range node.has {
		if got := countFamily(i, f); got == 0 || got > node.addressesIn(f, 2) {
			node.Errorf("in a subnet without whole blocks an ENI began with %d %s addresses", got, f)
		}
	}
	node.checkCarries(i.ID, i.Addresses)
}

func singlesTakeRoom(node *node) {
	for _, f := range node.blockFamilies() {
		i := node.bareENI()
		addrs := node.assignExactCount(i.ID, f, 1)
		room := node.mostInUnits(f) - node.unitSize(f)
		more, err := node.Cloud.AssignAddresses(node.ctx, i.ID, f, node.mostInUnits(f))
		node.checkKind(err, cloud.ErrLimit)
		if len(more) != room {
			node.Errorf("beside a single address there came %d in blocks, want %d", len(more), room)
		}
		node.checkCarries(i.ID, union(addrs, more...))
		node.discardENI(i)
	}
}

func takesBoth(node *node) {
	i := node.bareENI()
	f := node.firstFamily()
	if node.unitSize(f) == 1 {
		node.Skip("the first family comes in no blocks")
	}
	one, two := node.assignExactCount(i.ID, f, node.unitSize(f)), node.assignExactCount(i.ID, f, node.unitSize(f)+1)
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, two))
	node.checkCarries(i.ID, union(one))
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, one))
	node.checkCarries(i.ID, nil)
}

func refusesAPart(node *node) {
	for _, f := range node.blockFamilies() {
		i := node.bareENI()
		addrs := node.assignExactCount(i.ID, f, node.addressesIn(f, 2))
		units := node.splitUnits(addrs)
		last := units[len(units)-1]
		for _, part := range [][]netip.Addr{last[:1], last[1:], addrs[:len(addrs)-1]} {
			node.checkKind(node.Cloud.UnassignAddresses(node.ctx, i.ID, part), cloud.ErrForbidden)
			node.checkCarries(i.ID, union(addrs))
		}
		node.discardENI(i)
	}
}
