// Package netconf says what the kernel should hold for a pod, an ENI and a node,
// as values that print in the words of ip(8) and nft(8). It decides and touches
// nothing; package host makes it so.
//
// The order of a node's rules, which is the whole of the routing policy:
//
//	512   lookup main, host routes only      a pod of this node is always found first
//	1536  fwmark of ENI k                    what the firewall marked, see Firewall
//	1537  from ENI k's primary address       what the node itself sends from it
//	1538  from a pod's address               routing mode rule only
//
// 1538 stands behind 1536 so that the reply of a NodePort leaves through the ENI
// the connection came in on, whatever ENI the pod's address is on.
package netconf

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
)

// Protocol is the number that routes and rules of ours carry, so that nothing
// else is ever changed or removed.
const Protocol = 69

// Priorities of our rules; see the package comment.
const (
	PriorityPods    = 512
	PriorityMark    = 1536
	PriorityPrimary = 1537
	PrioritySource  = 1538
)

// MainTable is the kernel's table for ordinary routes.
const MainTable = 254

// VethPrefix begins the host-side name of every pod link of ours.
const VethPrefix = "eni"

// Table returns the routing table of the ENI with the device index. ENI 0, the
// node's own, lives in the main table.
func Table(index int) int {
	if index == 0 {
		return MainTable
	}
	return 100 + index
}

// Mark returns the packet mark that sends a packet out through the ENI with the
// device index. All bits set stands for ENI 0, because 0 means no mark.
func Mark(index int, mask uint32) uint32 {
	if index == 0 {
		return mask
	}
	return uint32(index) << bits.TrailingZeros32(mask)
}

// Addr is an address on a link.
type Addr struct {
	Prefix        netip.Prefix
	Dev           string
	NoPrefixRoute bool // no connected route: the subnet is reached by our own tables
}

// String returns the address as `ip address add` takes it.
func (a Addr) String() string {
	s := fmt.Sprintf("%s dev %s", a.Prefix, a.Dev)
	if a.NoPrefixRoute {
		s += " noprefixroute"
	}
	return s
}

// Route is a unicast route of ours. A route without gateway has scope link.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr
	Dev     string
	Table   int
	// IfNone asks for the route only where the table has no other one to Dst:
	// the node's own default route belongs to the system.
	IfNone bool
}

// String returns the route as `ip route add` takes it.
func (r Route) String() string {
	var b strings.Builder
	switch {
	case r.Dst.Bits() == 0:
		b.WriteString("default")
	case r.Dst.IsSingleIP():
		b.WriteString(r.Dst.Addr().String())
	default:
		b.WriteString(r.Dst.String())
	}
	if r.Gateway.IsValid() {
		fmt.Fprintf(&b, " via %s", r.Gateway)
	}
	fmt.Fprintf(&b, " dev %s", r.Dev)
	if r.Table != MainTable {
		fmt.Fprintf(&b, " table %d", r.Table)
	}
	fmt.Fprintf(&b, " proto %d", Protocol)
	if !r.Gateway.IsValid() {
		b.WriteString(" scope link")
	}
	return b.String()
}

// Rule is a routing policy rule of ours.
type Rule struct {
	Priority   int
	IPv6       bool
	From, To   netip.Prefix // the zero prefix is "all"
	Mark, Mask uint32       // a zero Mask matches any mark
	Table      int
	HostOnly   bool // only host routes of the table count
}

// String returns the rule as `ip rule` prints it.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d: from %s", r.Priority, orAll(r.From))
	if r.To.IsValid() {
		fmt.Fprintf(&b, " to %s", orAll(r.To))
	}
	if r.Mask != 0 {
		fmt.Fprintf(&b, " fwmark %#x/%#x", r.Mark, r.Mask)
	}
	if r.Table == MainTable {
		b.WriteString(" lookup main")
	} else {
		fmt.Fprintf(&b, " lookup %d", r.Table)
	}
	if r.HostOnly {
		fmt.Fprintf(&b, " suppress_prefixlength %d", r.SuppressPrefixLen())
	}
	fmt.Fprintf(&b, " proto %d", Protocol)
	return b.String()
}

// SuppressPrefixLen is the longest prefix that HostOnly ignores.
func (r Rule) SuppressPrefixLen() int {
	if r.IPv6 {
		return 127
	}
	return 31
}

func orAll(p netip.Prefix) string {
	switch {
	case !p.IsValid():
		return "all"
	case p.IsSingleIP():
		return p.Addr().String()
	}
	return p.String()
}

// Neigh is a permanent neighbour.
type Neigh struct {
	Addr netip.Addr
	MAC  MAC
	Dev  string
}

// String returns the neighbour as `ip neigh add` takes it.
func (n Neigh) String() string {
	return fmt.Sprintf("%s lladdr %s dev %s nud permanent", n.Addr, n.MAC, n.Dev)
}

// MAC is an Ethernet address.
type MAC [6]byte

// String returns the address in the usual six pairs.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Sysctl is a kernel setting; Key uses slashes, because link names hold dots.
type Sysctl struct{ Key, Value string }

// String returns the setting as sysctl(8) takes it.
func (s Sysctl) String() string { return s.Key + "=" + s.Value }

// hostPrefix returns a as /32 or /128.
func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Anywhere returns the destination of a default route.
func Anywhere(v6 bool) netip.Prefix {
	if v6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}
