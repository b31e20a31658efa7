package sim

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// mostAddresses is what counts as endless, such as a /64.
const mostAddresses = 1 << 40

// interfaces is Interfaces.
func (h hand) interfaces() []cloud.Interface {
	list := h.InterfacesOf(h.m.Name, nodeTag, h.m.Name)
	shown := make([]cloud.Interface, len(list))
	for n, i := range list {
		shown[n] = h.shown(i)
	}
	return shown
}

// shown is the ENI as a call returns it.
func (h hand) shown(i Interface) cloud.Interface {
	s := h.a.subnets[i.Subnet]
	out := cloud.Interface{ID: i.ID, Index: -1, MAC: i.MAC, Subnet: i.Subnet, Ours: h.made(i), Token: i.Tags[tokenTag], Created: i.Created}
	if i.Status == InUse {
		out.Index = i.Attachment.Index
	}
	if i.Primary.IsValid() {
		out.V4 = eni.Net{Primary: netip.PrefixFrom(i.Primary, s.V4.Bits()), Gateway: s.gateway(eni.IPv4)}
	}
	first6, v6 := h.parted(i)
	if first6.IsValid() {
		out.V6 = eni.Net{Primary: netip.PrefixFrom(first6, s.V6.Bits()), Gateway: s.gateway(eni.IPv6)}
	}
	if h.m.LikeBCE && out.Index > 0 {
		out.Index = markOf(i.Tags).Index
	}
	out.Addresses = slices.Concat(i.V4, v6)
	for _, p := range i.Prefixes {
		out.Addresses = append(out.Addresses, forPods(p, h.m.Limits.Block(eni.FamilyOf(p.Addr())).Size)...)
	}
	slices.SortFunc(out.Addresses, netip.Addr.Compare)
	return out
}

// parted returns an ENI's primary IPv6 address and those for pods: without one, none are.
func (h hand) parted(i Interface) (first netip.Addr, others []netip.Addr) {
	switch mark := markOf(i.Tags); {
	case i.First6:
		return i.V6[0], i.V6[1:]
	case !h.m.LikeBCE:
		return netip.Addr{}, i.V6
	case slices.Contains(i.V6, mark.V6):
		return mark.V6, slices.DeleteFunc(slices.Clone(i.V6), func(a netip.Addr) bool { return a == mark.V6 })
	}
	return netip.Addr{}, nil
}

// forPods returns the addresses of a prefix that pods may have, of an IPv6 one so many, and
// not its first: where it is the subnet's first it is that of all routers.
func forPods(p netip.Prefix, n int) []netip.Addr {
	if p.Addr().Is4() {
		return firstOf(p, n)
	}
	return firstOf(p, n+1)[1:]
}

// count returns how many secondary addresses of the family the ENI has.
func (h hand) count(i Interface, f eni.Family) int {
	n := len(i.V4)
	if f == eni.IPv6 {
		n = len(i.V6)
		if i.First6 {
			n--
		}
	}
	return n + len(i.PrefixesOf(f))*h.m.Limits.Block(f).Size
}

// subnets is Subnets.
func (h hand) subnets() []cloud.Subnet {
	mine := h.InterfacesOf(h.m.Name, nodeTag, h.m.Name)
	var list []cloud.Subnet
	for _, s := range h.Subnets() {
		if may := h.m.may(s.ID); may || slices.ContainsFunc(mine, func(i Interface) bool { return i.Subnet == s.ID }) {
			list = append(list, s.view(may))
		}
	}
	return list
}

// view is the subnet as a node sees it: with the room of the scarcer family.
func (s Subnet) view(mayBeNew bool) cloud.Subnet {
	free := mostAddresses
	for _, f := range families(s) {
		free = min(free, s.free(f))
	}
	return cloud.Subnet{ID: s.ID, V4Net: s.V4, V6Net: s.V6, Free: free, New: mayBeNew}
}
