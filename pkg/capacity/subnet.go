package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Subnet is one that nodes may take addresses from.
type Subnet struct {
	ID        string       // what people call it, the CIDR if they don't
	CIDR      netip.Prefix // may be unknown if Available is given
	Zone      string       // "" where zones don't matter
	Available int          // free addresses, without those the cloud keeps
	Exclusive bool         // kept for pods that ask for it: carries no node
}

// Usable returns how many addresses of a whole subnet interfaces can have if the
// cloud keeps some of them.
func Usable(cidr netip.Prefix, reserved int) (int, error) {
	switch {
	case !cidr.IsValid() || !cidr.Addr().Is4():
		return 0, errors.New("must be an IPv4 network like 10.0.0.0/24")
	case cidr != cidr.Masked():
		return 0, fmt.Errorf("has bits set behind its mask; its network is %s", cidr.Masked())
	}
	size := 1 << (32 - cidr.Bits())
	if size-reserved < 1 {
		return 0, fmt.Errorf("a /%d is too small: of its %d addresses the cloud keeps %d", cidr.Bits(), size, reserved)
	}
	return size - reserved, nil
}

// Overlap returns the first two subnets, by address, that share addresses.
func Overlap(subnets []Subnet) (a, b Subnet, found bool) {
	byAddr := slices.DeleteFunc(slices.Clone(subnets), func(s Subnet) bool { return !s.CIDR.IsValid() })
	slices.SortFunc(byAddr, func(a, b Subnet) int {
		return cmp.Or(a.CIDR.Addr().Compare(b.CIDR.Addr()), cmp.Compare(a.CIDR.Bits(), b.CIDR.Bits()))
	})
	for i := 1; i < len(byAddr); i++ {
		// CIDRs nest or are apart, so neighbours tell.
		if byAddr[i-1].CIDR.Overlaps(byAddr[i].CIDR) {
			return byAddr[i-1], byAddr[i], true
		}
	}
	return Subnet{}, Subnet{}, false
}

// compareSubnets orders subnets by zone, then as people count: by address, unknown ones
// last, then by name.
func compareSubnets(a, b Subnet) int {
	known := func(s Subnet) int {
		if s.CIDR.IsValid() {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.Zone, b.Zone),
		cmp.Compare(known(a), known(b)),
		a.CIDR.Addr().Compare(b.CIDR.Addr()),
		cmp.Compare(a.ID, b.ID),
	)
}
