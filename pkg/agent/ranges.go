package agent

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// addressesOf returns the addresses that the cache has on the ENI with the index.
func addressesOf(cached *ipam.State, index int) (addrs []netip.Addr) {
	for _, line := range cached.Addresses {
		if line.ENI == index {
			addrs = append(addrs, line.Addr)
		}
	}
	return addrs
}

// widenedFor returns the ENI with what it needs of the other, which is the same one at another time,
// to have the addresses: a primary address of their family and ranges for pods. A subnet may have
// hundreds of ranges: the cache, and with it the kernel, holds just those that addresses lie in.
func widenedFor(nic, other eni.Interface, addrs []netip.Addr) eni.Interface {
	if !nic.V4.IsValid() && slices.ContainsFunc(addrs, netip.Addr.Is4) {
		nic.V4 = other.V4
	}
	if !nic.V6.IsValid() && slices.ContainsFunc(addrs, netip.Addr.Is6) {
		nic.V6 = other.V6
	}
	for _, p := range other.Pods {
		if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return p.Contains(a) && !nic.MayHave(a) }) && nic.ValidRange(p) == nil {
			nic.Pods = append(slices.Clone(nic.Pods), p)
		}
	}
	return nic
}
