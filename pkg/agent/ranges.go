package agent

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// stillNeeded returns the ranges of an ENI of the old book that lines on it lie in and that the
// cloud no longer tells.
func stillNeeded(now, was eni.Interface, old *ipam.State) []netip.Prefix {
	var addrs []netip.Addr
	for _, line := range old.Addresses {
		if line.ENI == was.Index {
			addrs = append(addrs, line.Addr)
		}
	}
	return rangesFor(now, was.Pods, addrs)
}

// rangesFor returns those of the ranges that the ENI needs besides its own to have the addresses.
// A subnet may have hundreds of ranges: the book, and with it the kernel, holds just those that
// addresses lie in.
func rangesFor(nic eni.Interface, ranges []netip.Prefix, addrs []netip.Addr) (need []netip.Prefix) {
	for _, p := range ranges {
		if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return p.Contains(a) && !nic.MayHave(a) }) && nic.ValidRange(p) == nil {
			nic.Pods = append(slices.Clone(nic.Pods), p)
			need = append(need, p)
		}
	}
	return need
}
