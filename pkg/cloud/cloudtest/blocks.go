package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// inBlocks is what the comments say of addresses that come in blocks.
var inBlocks = []sentence{
	{"a block is Size addresses whose first Bits bits are the same", []Capability{Blocks}, sharesBits},
	{"AssignAddresses puts blocks, and single addresses for the rest", []Capability{Blocks}, putsTheRest},
	{"AssignAddresses puts single addresses where the subnet has no whole block", []Capability{Blocks, Breaking}, putsSingles},
	{"CreateInterface begins with single addresses where the subnet has no whole block", []Capability{Blocks, Breaking, Secondary}, beginsWithSingles},
	{"a single address takes as much of the limit as a block", []Capability{Blocks, Quotas}, singlesTakeRoom},
	{"UnassignAddresses takes blocks and single addresses", []Capability{Blocks}, takesBoth},
	{"UnassignAddresses refuses a part of a block and does nothing", []Capability{Blocks}, refusesAPart},
}

// blocks are the families whose addresses come in blocks of more than one.
func (n *node) blocks() []eni.Family {
	return slices.DeleteFunc(slices.Clone(n.has), func(f eni.Family) bool { return n.unit(f) == 1 })
}

// bare returns an ENI that has only its primary addresses.
func (n *node) bare() cloud.Interface {
	n.Helper()
	return n.carrier(0)
}

// put is AssignAddresses of that many addresses, all of which must come.
func (n *node) put(id string, f eni.Family, count int) []netip.Addr {
	n.Helper()
	addrs, err := n.Cloud.AssignAddresses(n.ctx, id, f, count)
	n.must(err)
	if len(addrs) != count {
		n.Fatalf("AssignAddresses of %d %s addresses = %v", count, f, addrs)
	}
	return addrs
}

func sharesBits(n *node) {
	i := n.bare()
	for _, f := range n.blocks() {
		for range n.some(f, 2) / n.unit(f) {
			block := n.put(i.ID, f, n.unit(f))
			if len(n.units(block)) != 1 {
				n.Errorf("a block has %v, which do not share %d bits", block, n.limits.Block(f).Bits)
			}
			if slices.ContainsFunc(n.units(i.Addresses), func(unit []netip.Addr) bool { return len(n.units(with(unit, block...))) == 1 }) {
				n.Errorf("two blocks share their bits: %v and one of %v", block, i.Addresses)
			}
			i.Addresses = with(i.Addresses, block...)
		}
	}
	n.carries(i.ID, i.Addresses)
}

func putsTheRest(n *node) {
	for _, f := range n.blocks() {
		if n.most(f) == n.unit(f) {
			continue // there is no room for a block and one more
		}
		i := n.bare()
		addrs := n.put(i.ID, f, n.unit(f)+1)
		if len(n.units(addrs)) != 2 {
			n.Errorf("of %d addresses %d came together", n.unit(f)+1, len(n.units(addrs)[0]))
		}
		n.carries(i.ID, addrs)
		n.discard(i)
	}
}

// putsSingles: how many come the limit of the ENI decides.
func putsSingles(n *node) {
	i := n.bare()
	n.Break(n.first)
	f := n.blocks()[0]
	addrs, err := n.Cloud.AssignAddresses(n.ctx, i.ID, f, n.unit(f))
	if err != nil {
		n.is(err, cloud.ErrLimit, cloud.ErrSubnetFull)
	}
	if len(addrs) == 0 || len(addrs) > n.unit(f) {
		n.Errorf("a subnet without whole blocks gave %v", addrs)
	}
	n.carries(i.ID, addrs)
}

func beginsWithSingles(n *node) {
	n.Break(n.first)
	i := n.create(2)
	for _, f := range n.has {
		if got := countFamily(i, f); got == 0 || got > n.some(f, 2) {
			n.Errorf("in a subnet without whole blocks an ENI began with %d %s addresses", got, f)
		}
	}
	n.carries(i.ID, i.Addresses)
}

func singlesTakeRoom(n *node) {
	for _, f := range n.blocks() {
		i := n.bare()
		addrs := n.put(i.ID, f, 1)
		room := n.most(f) - n.unit(f)
		more, err := n.Cloud.AssignAddresses(n.ctx, i.ID, f, n.most(f))
		n.is(err, cloud.ErrLimit)
		if len(more) != room {
			n.Errorf("beside a single address there came %d in blocks, want %d", len(more), room)
		}
		n.carries(i.ID, with(addrs, more...))
		n.discard(i)
	}
}

func takesBoth(n *node) {
	i := n.bare()
	f := n.family()
	if n.unit(f) == 1 {
		n.Skip("the first family comes in no blocks")
	}
	one, two := n.put(i.ID, f, n.unit(f)), n.put(i.ID, f, n.unit(f)+1)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, two))
	n.carries(i.ID, with(one))
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, one))
	n.carries(i.ID, nil)
}

func refusesAPart(n *node) {
	for _, f := range n.blocks() {
		i := n.bare()
		addrs := n.put(i.ID, f, n.some(f, 2))
		units := n.units(addrs)
		last := units[len(units)-1]
		for _, part := range [][]netip.Addr{last[:1], last[1:], addrs[:len(addrs)-1]} {
			n.is(n.Cloud.UnassignAddresses(n.ctx, i.ID, part), cloud.ErrForbidden)
			n.carries(i.ID, with(addrs))
		}
		n.discard(i)
	}
}
