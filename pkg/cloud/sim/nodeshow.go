package sim

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// mostAddresses is what counts as endless, such as a /64.
const mostAddresses = 1 << 40

// interfaces returns the ENIs of the node, in the order of their creation.
func (h hand) interfaces() []cloud.Interface {
	list := h.InterfacesOf(h.m.Name, tagInstance, h.m.Name)
	shown := make([]cloud.Interface, len(list))
	for n, i := range list {
		shown[n] = h.shown(i)
	}
	return shown
}

// shown is the ENI as the node's engine shows it.
func (h hand) shown(i Interface) cloud.Interface {
	s := h.a.subnets[i.Subnet]
	out := cloud.Interface{ID: i.ID, Index: -1, MAC: i.MAC, Subnet: i.Subnet, Ours: h.made(i), Token: i.Tags[tagToken], Created: i.Created}
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

// view is the subnet as a node sees it: with the room of the scarcer family.
func (s Subnet) view(mayBeNew bool) cloud.Subnet {
	free := mostAddresses
	for _, f := range families(s) {
		free = min(free, s.free(f))
	}
	return cloud.Subnet{ID: s.ID, V4Net: s.V4, V6Net: s.V6, Free: free, New: mayBeNew}
}

// free is how many addresses of the family are left.
func (s Subnet) free(f eni.Family) int {
	if f == eni.IPv4 {
		return s.Free
	}
	return s.Free6
}

// families returns those the subnet has.
func families(s Subnet) (fs []eni.Family) {
	if s.V4.IsValid() {
		fs = append(fs, eni.IPv4)
	}
	if s.V6.IsValid() {
		fs = append(fs, eni.IPv6)
	}
	return fs
}

// made tells whether CreateInterface made the ENI for the node.
func (h hand) made(i Interface) bool { return i.Tags[tagInstance] == h.m.Name }
