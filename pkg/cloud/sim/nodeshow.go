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
func (h nodeView) interfaces() []cloud.Interface {
	list := h.InterfacesOf(h.spec.Name, tagInstance, h.spec.Name)
	shown := make([]cloud.Interface, len(list))
	for n, i := range list {
		shown[n] = h.asEngineShows(i)
	}
	return shown
}

// asEngineShows returns the ENI as the node's engine should show it. It is written apart from the
// engine, so that tests can compare the two.
func (h nodeView) asEngineShows(iface Interface) cloud.Interface {
	s := h.a.subnets[iface.Subnet]
	out := cloud.Interface{ID: iface.ID, Index: -1, MAC: iface.MAC, Subnet: iface.Subnet, Ours: h.isMade(iface), Token: iface.Tags[tagToken], Created: iface.Created}
	if iface.Status == InUse {
		out.Index = iface.Attachment.Index
	}
	if iface.Primary.IsValid() {
		out.V4 = eni.Net{Primary: netip.PrefixFrom(iface.Primary, s.V4.Bits()), Gateway: s.gateway(eni.IPv4)}
	}
	first6, v6 := h.splitV6(iface)
	if first6.IsValid() {
		out.V6 = eni.Net{Primary: netip.PrefixFrom(first6, s.V6.Bits()), Gateway: s.gateway(eni.IPv6)}
	}
	if h.spec.LikeBCE && out.Index > 0 {
		out.Index = markOf(iface.Tags).Index
	}
	out.Addresses = slices.Concat(iface.V4, v6)
	for _, p := range iface.Prefixes {
		out.Addresses = append(out.Addresses, forPods(p, h.spec.Limits.Block(eni.FamilyOf(p.Addr())).Size)...)
	}
	slices.SortFunc(out.Addresses, netip.Addr.Compare)
	return out
}

// splitV6 returns an ENI's primary IPv6 address and those for pods. Without a primary address there
// are none for pods on a cloud like BCE.
func (h nodeView) splitV6(i Interface) (first netip.Addr, others []netip.Addr) {
	switch mark := markOf(i.Tags); {
	case i.First6:
		return i.V6[0], i.V6[1:]
	case !h.spec.LikeBCE:
		return netip.Addr{}, i.V6
	case slices.Contains(i.V6, mark.V6):
		return mark.V6, slices.DeleteFunc(slices.Clone(i.V6), func(a netip.Addr) bool { return a == mark.V6 })
	}
	return netip.Addr{}, nil
}

// forPods returns the n addresses of a prefix that pods may have. Of an IPv6 prefix the first is
// not among them: in the subnet's first prefix it is the anycast address of all routers.
func forPods(p netip.Prefix, n int) []netip.Addr {
	if p.Addr().Is4() {
		return firstOf(p, n)
	}
	return firstOf(p, n+1)[1:]
}

// asCloudSubnet returns the subnet as a node sees it: Free is that of the scarcer family.
func (s Subnet) asCloudSubnet(mayBeNew bool) cloud.Subnet {
	free := mostAddresses
	for _, f := range familiesOf(s) {
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

// familiesOf returns those the subnet has.
func familiesOf(s Subnet) (fs []eni.Family) {
	if s.V4.IsValid() {
		fs = append(fs, eni.IPv4)
	}
	if s.V6.IsValid() {
		fs = append(fs, eni.IPv6)
	}
	return fs
}

// isMade tells whether CreateInterface made the ENI for the node.
func (h nodeView) isMade(i Interface) bool { return i.Tags[tagInstance] == h.spec.Name }
