package order

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// WidestV4 is the length of the widest delegated prefix of IPv4: no cloud delegates a wider one. An object may say anything, and
// each address of a prefix is looked at.
const WidestV4 = 28

// addrSet is addresses one by one, whether they came as such or in delegated prefixes.
type addrSet map[netip.Addr]bool

// Addresses returns the addresses of prefixes that pods may have, in their order: a host prefix is one, a
// delegated one of IPv4 all of it, and one that is wider than any that is delegated none. One of IPv6 is as many as its Size in the limits says, from the second on,
// since the first is the anycast address of the prefix's routers (RFC 4291, 2.6.1).
func Addresses(l eni.Limits, prefixes ...netip.Prefix) []netip.Addr {
	var list []netip.Addr
	for _, p := range prefixes {
		list = append(list, expandPrefix(l, p)...)
	}
	return list
}

func expandPrefix(l eni.Limits, p netip.Prefix) []netip.Addr {
	a := p.Addr()
	if p.IsSingleIP() {
		return []netip.Addr{a}
	}
	n := max(l.Block(eni.IPv6).Size, 1)
	if a.Is4() {
		if p.Bits() < WidestV4 {
			return nil
		}
		n = 1 << (a.BitLen() - p.Bits())
	} else {
		a = a.Next()
	}
	list := make([]netip.Addr, 0, n)
	for ; len(list) < n; a = a.Next() {
		list = append(list, a)
	}
	return list
}

// setOf returns the addresses of lists of prefixes.
func setOf(l eni.Limits, lists ...[]netip.Prefix) addrSet {
	set := addrSet{}
	for _, prefixes := range lists {
		set.add(Addresses(l, prefixes...))
	}
	return set
}

func (s addrSet) add(addrs []netip.Addr) {
	for _, a := range addrs {
		s[a] = true
	}
}

// hasAll tells whether the prefix has addresses and every one of them is in the set.
func (s addrSet) hasAll(l eni.Limits, p netip.Prefix) bool {
	all := expandPrefix(l, p)
	return len(all) > 0 && !slices.ContainsFunc(all, func(a netip.Addr) bool { return !s[a] })
}

// hasAny tells whether some address of the prefix is in the set.
func (s addrSet) hasAny(l eni.Limits, p netip.Prefix) bool {
	return slices.ContainsFunc(expandPrefix(l, p), func(a netip.Addr) bool { return s[a] })
}

// partOf returns what of the prefix keep says: itself where that is all of it, else single addresses.
func partOf(l eni.Limits, p netip.Prefix, keep func(netip.Addr) bool) []netip.Prefix {
	all := expandPrefix(l, p)
	var part []netip.Prefix
	for _, a := range all {
		if keep(a) {
			part = append(part, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	if len(part) > 0 && len(part) == len(all) {
		return []netip.Prefix{p}
	}
	return part
}

// partsOf returns what of the prefixes keep says.
func partsOf(l eni.Limits, list []netip.Prefix, keep func(netip.Addr) bool) (parts []netip.Prefix) {
	for _, p := range list {
		parts = append(parts, partOf(l, p, keep)...)
	}
	return parts
}

// without returns the prefixes without the addresses of the set: of one that loses some the others stay, as single addresses.
func (s addrSet) without(l eni.Limits, list []netip.Prefix) []netip.Prefix {
	return partsOf(l, list, func(a netip.Addr) bool { return !s[a] })
}

// quarantinedPrefixes returns the prefixes of quarantine.
func (s Status) quarantinedPrefixes() []netip.Prefix {
	var list []netip.Prefix
	for _, q := range s.Quarantined {
		list = append(list, q.Prefix)
	}
	return list
}

// reservedBy returns the reserved addresses that keep says, with what they are reserved for.
func (s Status) reservedBy(keep func(Reserved) bool) map[netip.Addr]Reserved {
	found := map[netip.Addr]Reserved{}
	for _, r := range s.Reserved {
		if keep(r) {
			found[r.Addr] = r
		}
	}
	return found
}

// attachedAddrs returns the addresses that the status shows on attached ENIs, also on those that carry no pods.
func (s Status) attachedAddrs() addrSet {
	set := addrSet{}
	for _, e := range s.ENIs {
		if e.State == Attached {
			set.add(Addresses(s.Limits, e.Addresses...))
		}
	}
	return set
}

// findENI returns the ENI with the id, nil if there is none.
func (s *Status) findENI(id string) *ENI {
	for i := range s.ENIs {
		if s.ENIs[i].ID == id {
			return &s.ENIs[i]
		}
	}
	return nil
}

// clone returns a copy that shares no list.
func (s Status) clone() Status {
	s.ENIs = slices.Clone(s.ENIs)
	for i := range s.ENIs {
		s.ENIs[i].Addresses = slices.Clone(s.ENIs[i].Addresses)
	}
	s.Releasing, s.LeavingInterfaces = slices.Clone(s.Releasing), slices.Clone(s.LeavingInterfaces)
	s.Quarantined, s.Reserved = slices.Clone(s.Quarantined), slices.Clone(s.Reserved)
	s.Leaders = slices.Clone(s.Leaders)
	return s
}

// presentAddrs returns the addresses that the cloud has for the node, whether pods can have them or not.
func (s Status) presentAddrs() addrSet {
	set := addrSet{}
	for _, e := range s.ENIs {
		if e.State != Creating && e.State != Detached {
			set.add(Addresses(s.Limits, e.Addresses...))
		}
	}
	return set
}
