package topology

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/placement"
)

// Cover returns the fewest prefixes that have exactly the addresses of the source's ranges, in order, without those that the cloud
// gives to nobody: for a reservation in the cloud, which takes prefixes alone. A source without ranges needs none. It says which
// range is not one of the subnet.
func Cover(from Source, in Subnet) (list []netip.Prefix, err error) {
	for _, r := range from.Ranges {
		if err := in.checkRange(r); err != nil {
			return nil, err
		}
	}
	if len(from.Ranges) == 0 {
		return nil, nil
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		for _, r := range usableRanges(from, in, f) {
			list = append(list, placement.Cover(r.From, r.To)...)
		}
	}
	return list, nil
}

// checkRange tells what is wrong with a range of the subnet.
func (s Subnet) checkRange(r Range) error {
	switch {
	case !r.From.IsValid() || !r.To.IsValid() || r.From.BitLen() != r.To.BitLen() || r.From.Compare(r.To) > 0:
		return fmt.Errorf("%s is no range", r)
	case !s.hasRange(r):
		return fmt.Errorf("%s is not in subnet %s, which has %s", r, s.ID, s.networks())
	}
	return nil
}

// networks says what the subnet has.
func (s Subnet) networks() string {
	var list []string
	for _, net := range []netip.Prefix{s.V4, s.V6} {
		if net.IsValid() && net.Bits() > 0 { // of one that has them all nobody knows which
			list = append(list, net.String())
		}
	}
	return cmp.Or(strings.Join(list, " and "), "no addresses")
}

// usableRanges returns the addresses of one family that a source may give to pods: in order, and no two ranges touch.
func usableRanges(from Source, in Subnet, f eni.Family) (list []Range) {
	whole, has := in.usableRange(f)
	if !has {
		return nil
	}
	if len(from.Ranges) == 0 {
		return []Range{whole}
	}
	asked := slices.Clone(from.Ranges)
	slices.SortFunc(asked, func(a, b Range) int { return a.From.Compare(b.From) })
	for _, r := range asked {
		if !r.overlaps(whole) {
			continue
		}
		r.From, r.To = later(r.From, whole.From), earlier(r.To, whole.To)
		// Two that touch are one: it may need fewer prefixes than both.
		if last := len(list) - 1; last >= 0 && (r.overlaps(list[last]) || list[last].To.Next() == r.From) {
			list[last].To = later(list[last].To, r.To)
			continue
		}
		list = append(list, r)
	}
	return list
}

// usableRange returns the subnet's addresses of a family without those that the cloud keeps.
func (s Subnet) usableRange(f eni.Family) (Range, bool) {
	net := s.V4
	if f == eni.IPv6 {
		net = s.V6
	}
	if !net.IsValid() {
		return Range{}, false
	}
	r := Range{net.Masked().Addr(), placement.LastOf(net)}
	for range s.KeptFirst {
		r.From = r.From.Next()
	}
	for range s.KeptLast {
		r.To = r.To.Prev()
	}
	return r, r.From.IsValid() && r.To.IsValid() && r.From.Compare(r.To) <= 0
}

func earlier(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return a
	}
	return b
}

func later(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}
