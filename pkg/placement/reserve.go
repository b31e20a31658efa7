package placement

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// mostRanges is how many ranges of a subnet are reserved in the cloud at most. What needs more is not worth the calls.
const mostRanges = 32

// Cover returns the fewest prefixes that have exactly the addresses from one to another, in order. It returns none if the two are not
// of one family, or the last comes before the first.
func Cover(first, last netip.Addr) (list []netip.Prefix) {
	if !first.IsValid() || !last.IsValid() || first.BitLen() != last.BitLen() {
		return nil
	}
	for at := first; at.IsValid() && at.Compare(last) <= 0; {
		p := netip.PrefixFrom(at, at.BitLen())
		// The largest that begins here and does not go beyond the last one.
		for p.Bits() > 0 {
			wider := netip.PrefixFrom(at, p.Bits()-1)
			if wider.Masked().Addr() != at || LastOf(wider).Compare(last) > 0 {
				break
			}
			p = wider
		}
		list = append(list, p)
		at = LastOf(p).Next() // not valid behind the last address that there is
	}
	return list
}

// LastOf returns the last address of a prefix.
func LastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(b); bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Ranges returns ranges of a subnet that are to be reserved as clouds take them: in order, and none within another. It says why they
// can't be: the subnet has not all of them, or they are too many.
func Ranges(asked []netip.Prefix, nets ...netip.Prefix) (list []netip.Prefix, err error) {
	for _, in := range asked {
		if !slices.ContainsFunc(nets, func(net netip.Prefix) bool {
			return net.IsValid() && net.Contains(in.Addr()) && in.Bits() >= net.Bits()
		}) {
			return nil, fmt.Errorf("%s is not in the subnet", in)
		}
		if !slices.ContainsFunc(asked, func(other netip.Prefix) bool { return other.Bits() < in.Bits() && other.Overlaps(in) }) {
			list = append(list, in)
		}
	}
	slices.SortFunc(list, inOrder)
	if list = slices.Compact(list); len(list) > mostRanges {
		return nil, fmt.Errorf("%d ranges are too many, %d can be reserved in a subnet", len(list), mostRanges)
	}
	return list, nil
}

func inOrder(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// Reserved is a range of a subnet that is reserved in the cloud.
type Reserved struct {
	Range  netip.Prefix
	Ours   bool // this cluster has reserved it
	Blocks bool // for delegated prefixes, not for addresses by name
}

// Reserving is what is to be done so that exactly what is wanted is reserved, as far as this cluster may do it.
type Reserving struct {
	End     []netip.Prefix // ours that nobody wants: before Make, since the cloud lets no two overlap
	Make    []netip.Prefix
	Barred  []netip.Prefix // wanted, and not to be had: others have reserved a part of them
	Blocked netip.Prefix   // the first range of others that bars one
}

// PlanReserving compares what is wanted with what is there. Ranges of others stay; one that is exactly as wanted will do.
func PlanReserving(want []netip.Prefix, there []Reserved) (p Reserving) {
	for _, is := range there {
		if is.Ours && !is.Blocks && !slices.Contains(want, is.Range) {
			p.End = append(p.End, is.Range)
		}
	}
	for _, in := range want {
		// One of ours that overlaps is no bar: it ends first, since it is not as wanted.
		switch at := slices.IndexFunc(there, func(is Reserved) bool { return (!is.Ours || is.Blocks) && is.Range.Overlaps(in) }); {
		case slices.ContainsFunc(there, func(is Reserved) bool { return is.Range == in && !is.Blocks }):
		case at >= 0:
			p.Barred = append(p.Barred, in)
			if !p.Blocked.IsValid() {
				p.Blocked = there[at].Range
			}
		default:
			p.Make = append(p.Make, in)
		}
	}
	return p
}

// Size returns how many addresses a range has, at most so many.
func Size(in netip.Prefix, most int) int {
	if bits := in.Addr().BitLen() - in.Bits(); bits < 31 {
		return min(1<<bits, most)
	}
	return most
}
