package aws

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Prefixes that EC2 delegates to an ENI.
const (
	bits4 = 28
	size4 = 16
	bits6 = 80
)

// parseBlock reads a delegated prefix of a family.
func parseBlock(text string, f eni.Family) (netip.Prefix, error) {
	bits := bits4
	if f == eni.IPv6 {
		bits = bits6
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || p.Bits() != bits || eni.FamilyOf(p.Addr()) != f {
		return netip.Prefix{}, fmt.Errorf("prefix %q is no /%d", text, bits)
	}
	return p, nil
}

// expand returns the addresses of a block that pods may have: all of a /28, the
// first n of a /80. The very first of a /80 is left out: where it is the subnet's
// first it is the anycast address of all routers.
func expand(block netip.Prefix, n int) []netip.Addr {
	a := block.Addr()
	if a.Is4() {
		n = size4
	} else {
		a = a.Next()
	}
	addrs := make([]netip.Addr, 0, n)
	for ; len(addrs) < n; a = a.Next() {
		addrs = append(addrs, a)
	}
	return addrs
}

// union is the sorted union.
func union(a, b []netip.Addr) []netip.Addr {
	all := slices.Concat(a, b)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// minus is what of a is not in b, as it was.
func minus(a, b []netip.Addr) []netip.Addr {
	var rest []netip.Addr
	for _, addr := range a {
		if !slices.Contains(b, addr) {
			rest = append(rest, addr)
		}
	}
	return rest
}

// ofFamily is what of a belongs to a family.
func ofFamily(a []netip.Addr, f eni.Family) []netip.Addr {
	var some []netip.Addr
	for _, addr := range a {
		if eni.FamilyOf(addr) == f {
			some = append(some, addr)
		}
	}
	return some
}
