package netconf

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Firewall is what the packet filter should hold: marks that send a packet out
// through its ENI, the node's address for what leaves the VPC, and nothing
// from pods with a source address that is not theirs. Nft and Iptables say it in the filter's words.
type Firewall struct {
	Backend   ipam.Firewall
	Mask      uint32         // our bits of packet and connection marks
	OldMasks  []uint32       // connections may still carry marks of these; see Understanding
	ENIs      []FirewallENI  // by index
	Sources   []Source       // routing map only: addresses of ENIs other than 0, sorted
	Pool      []netip.Addr   // IPv4 addresses that leave the VPC as SNAT, sorted; SNAT on only
	Subnets   []netip.Prefix // IPv4 ranges of the ENIs: iptables matches on them, so that nothing is per pod
	VPC       []netip.Prefix // IPv4 destinations that see the pod's own address, sorted, none inside another
	SNAT      netip.Addr     // ENI 0's primary IPv4; invalid: SNAT is off
	OutDevice string         // ENI 0's device
	Node4     netip.Addr     // ENI 0's primary addresses; invalid where it has none of the family
	Node6     netip.Addr
	Ports     []PodPorts // host ports, by pod address; the caller fills them in
	// Services are addresses on links for services, see IsServiceLink, sorted. They lead
	// to no host port. The caller fills them in.
	Services []netip.Addr
	// DropSpoofed6 asks for reverse path checks on pod links, where the node state has IPv6
	// at all. For IPv4 the link's rp_filter does it: a pod's link has no IPv4 address on
	// the node's side, and without one the kernel knows no loose form of it.
	DropSpoofed6 bool
	// DropSpoofed4 asks for those of IPv4: somebody gave a pod's link an address (a link-local
	// one, as systemd-networkd and avahi do), and where rp_filter is 2 for all links the
	// kernel is content with any route to a source then. The caller fills it in.
	DropSpoofed4 bool
}

// FirewallENI is an ENI as the firewall sees it.
type FirewallENI struct {
	Index  int
	Device string
}

// Source sends what Addr sends out through the ENI with the index.
type Source struct {
	Addr netip.Addr
	ENI  int
}

// NewFirewall returns what the packet filter should hold for the node state. Addresses
// with a damaged record are left out: their ENI is not known; so are those on their
// way back to the cloud, those that others hold and those that pods of other nodes have by now.
func NewFirewall(state *ipam.State) Firewall {
	wanted := Firewall{Backend: state.Settings.Firewall, Mask: state.Settings.MarkMask, DropSpoofed6: hasIPv6(state)}
	for _, nic := range state.ENIs {
		wanted.ENIs = append(wanted.ENIs, FirewallENI{nic.Index, nic.Device})
		if nic.Index == 0 {
			wanted.OutDevice, wanted.Node4, wanted.Node6 = nic.Device, nic.V4.Primary.Addr(), nic.V6.Primary.Addr()
			if state.Settings.SNAT && nic.V4.IsValid() {
				wanted.SNAT = nic.V4.Primary.Addr()
			}
		}
	}
	slices.SortFunc(wanted.ENIs, func(a, b FirewallENI) int { return a.Index - b.Index })
	for _, a := range state.Addresses {
		if a.State == eni.Releasing || a.State == eni.Held || a.HasMoved() {
			continue // the kernel forgets it before the cloud does; how others' pods are routed is others' business
		}
		if state.Settings.Routing == ipam.Map && a.ENI > 0 {
			wanted.Sources = append(wanted.Sources, Source{a.Addr, a.ENI})
		}
		if wanted.SNAT.IsValid() && a.Addr.Is4() {
			wanted.Pool = append(wanted.Pool, a.Addr)
		}
	}
	slices.SortFunc(wanted.Sources, func(a, b Source) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(wanted.Pool, netip.Addr.Compare)
	if wanted.SNAT.IsValid() {
		wanted.Subnets, wanted.VPC = subnetsIPv4(state.ENIs), mergeIPv4(state.Settings.VPC)
	}
	return wanted
}

// Understanding returns f for the time in which connections still carry marks of
// other masks: new ones get marks of f.Mask, replies of all leave by their ENI.
func (f Firewall) Understanding(masks []uint32) Firewall {
	f.OldMasks = masks
	return f
}

func subnetsIPv4(nics []eni.Interface) []netip.Prefix {
	var nets []netip.Prefix
	for _, nic := range nics {
		nets = append(nets, nic.Ranges()...)
	}
	return mergeIPv4(nets)
}

// mergeIPv4 returns the IPv4 prefixes sorted and without those inside another: an
// nftables interval set refuses overlaps.
func mergeIPv4(prefixes []netip.Prefix) []netip.Prefix {
	var sorted, kept []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4() {
			sorted = append(sorted, p.Masked())
		}
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	for _, p := range sorted {
		if n := len(kept); n == 0 || !kept[n-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// needsMarks tells whether packets need marks: with one ENI there is only one way
// out. With more, every connection from outside has its replies leave by the ENI
// it came in by, whatever the address of the pod and wherever they go: a
// NodePort's connection comes in by any ENI; one straight to a pod may come from
// outside the VPC, and what goes there would leave by ENI 0 otherwise.
func (f Firewall) needsMarks() bool { return len(f.ENIs) > 1 }

// dropsSpoofed tells whether what pods send of the family is checked.
func (f Firewall) dropsSpoofed(family eni.Family) bool {
	if family == eni.IPv6 {
		return f.DropSpoofed6
	}
	return f.DropSpoofed4
}

// enisNamedLikePods returns the ENIs whose device is named like a pod's link.
func (f Firewall) enisNamedLikePods() []FirewallENI {
	return slices.DeleteFunc(slices.Clone(f.ENIs), func(e FirewallENI) bool { return !strings.HasPrefix(e.Device, VethPrefix) })
}
