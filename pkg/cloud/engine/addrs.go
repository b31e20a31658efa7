package engine

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// union returns the addresses of all lists, sorted, each once.
func union(lists ...[]netip.Addr) []netip.Addr {
	all := slices.Concat(lists...)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// minus returns the addresses of a that are not in b, in the order of a.
func minus(a, b []netip.Addr) []netip.Addr {
	var rest []netip.Addr
	if len(b) == 0 {
		return append(rest, a...)
	}
	for _, addr := range a {
		if !slices.Contains(b, addr) {
			rest = append(rest, addr)
		}
	}
	return rest
}

// addrsWithin returns those of the addresses that are in the block.
func addrsWithin(block netip.Prefix, addrs []netip.Addr) []netip.Addr {
	var inside []netip.Addr
	for _, a := range addrs {
		if block.Contains(a) {
			inside = append(inside, a)
		}
	}
	return inside
}

// ofFamily returns those of the addresses that are of the family.
func ofFamily(addrs []netip.Addr, f eni.Family) []netip.Addr {
	var some []netip.Addr
	for _, a := range addrs {
		if eni.FamilyOf(a) == f {
			some = append(some, a)
		}
	}
	return some
}

// blocksWith returns, each once, the blocks that have at least one of the addresses.
func blocksWith(addrs []netip.Addr, lists ...[]netip.Prefix) (blocks []netip.Prefix) {
	for _, b := range slices.Concat(lists...) {
		if !slices.Contains(blocks, b) && len(addrsWithin(b, addrs)) > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// partialBlocks returns the blocks of which expandBlock returns only a part, sorted.
func partialBlocks(blocks []netip.Prefix) (list []netip.Prefix) {
	for _, b := range blocks {
		if b.Addr().Is6() {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return list
}

// expandBlock returns the addresses of a block that pods may have: all of an IPv4 one, the
// first n of an IPv6 one. The very first of an IPv6 block is left out: where it is the
// subnet's first it is the anycast address of all routers (RFC 4291, 2.6.1).
func expandBlock(block netip.Prefix, n int) []netip.Addr {
	a := block.Addr()
	if a.Is4() {
		n = 1 << (32 - block.Bits())
	} else {
		a = a.Next()
	}
	addrs := make([]netip.Addr, 0, n)
	for ; len(addrs) < n; a = a.Next() {
		addrs = append(addrs, a)
	}
	return addrs
}
