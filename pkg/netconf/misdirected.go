package netconf

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Misdirected returns what tells whether a flow that a pod of a secondary ENI began leaves
// by an ENI that its source is not an address of, so that the VPC drops it: what is inside
// the VPC changed after the flow began. By which ENI a packet leaves is decided for each one,
// its translation for the whole flow. exit names the link by which a packet of a pod leaves
// the node; a flow that stays on the node, or leaves by a tunnel, is none of them.
func Misdirected(s *ipam.State, exit func(from, to netip.Addr) string) func(Flow) bool {
	firewall, secondary := NewFirewall(s), map[netip.Addr]bool{}
	for _, a := range s.Addresses {
		if a.ENI > 0 && a.Addr.Is4() && a.State != eni.Releasing && a.State != eni.Held && !a.HasMoved() {
			secondary[a.Addr] = true
		}
	}
	byENI := func(c Flow) bool {
		dev := exit(c.From, c.Target)
		return slices.ContainsFunc(firewall.ENIs, func(e FirewallENI) bool { return e.Device == dev })
	}
	return func(c Flow) bool {
		if !secondary[c.From] {
			return false // by the primary ENI leaves the pod's address as well as the node's
		}
		if firewall.keepsSource(c.Target) {
			return c.Back == firewall.Node4 && byENI(c)
		}
		return c.Back == c.From && exit(c.From, c.Target) == firewall.OutDevice
	}
}

// keepsSource tells whether the destination sees the pod's own address.
func (f Firewall) keepsSource(to netip.Addr) bool {
	return !f.SNAT.IsValid() || slices.ContainsFunc(f.VPC, func(p netip.Prefix) bool { return p.Contains(to) })
}
