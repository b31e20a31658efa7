// Package netconf says what the kernel should hold for a pod, an ENI and a node,
// as values that print in the words of ip(8) and nft(8). It decides and touches
// nothing; package host makes it so.
//
// The order of a node's rules, which is the whole of the routing policy:
//
//	512   lookup 100, host routes only       a pod of this node is always found first
//	1536  fwmark of ENI k                    what the firewall marked, see Firewall
//	1537  from ENI k's primary address       what the node itself sends from it
//	1538  from a pod's address               routing mode rule only
//
// 1538 stands behind 1536 so that the reply of a NodePort leaves through the ENI
// the connection came in on, whatever ENI the pod's address is on.
//
// Table 100 holds pods' host routes and nothing else. In the main table they would
// stand among host routes of others, as systemd-networkd writes them to a DNS server
// or a gateway, and a rule that finds ours there finds those too: a pod of another
// ENI would send to them by ENI 0, where the cloud drops it. DESIGN.md says what happens
// where others use our tables, and to packets for an address that no pod has.
package netconf

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Protocol is the number that routes and rules of ours carry, so that nothing
// else is ever changed or removed. What serves table 100, and the rules for marks,
// carry PodsProtocol instead: earlier releases remove every rule with Protocol that
// they do not want, and a node may be downgraded to one of those.
const (
	Protocol     = 69
	PodsProtocol = 70
)

// Priorities of our rules; see the package comment.
const (
	PriorityPods    = 512
	PriorityMark    = 1536
	PriorityPrimary = 1537
	PrioritySource  = 1538
)

// MainTable is the kernel's table for ordinary routes; PodsTable is ours for pods'
// host routes, one below the tables of the ENIs.
const (
	MainTable = 254
	PodsTable = 100

	lastTable = PodsTable + eni.MaxIndex
)

// VethPrefix begins the host-side name of every pod link of ours.
const VethPrefix = "eni"

// Table returns the routing table of the ENI with the device index. ENI 0, the
// primary one, has the main table.
func Table(index int) int {
	if index == 0 {
		return MainTable
	}
	return PodsTable + index
}

// Mark returns the packet mark that sends a packet out through the ENI with the
// device index. All bits set stands for ENI 0, because 0 means no mark.
func Mark(index int, mask uint32) uint32 {
	if index == 0 {
		return mask
	}
	return uint32(index) << bits.TrailingZeros32(mask)
}

// IsOurTable tells whether the routing table is one of ours: that of pods, or of an ENI.
func IsOurTable(table int) bool { return table >= PodsTable && table <= lastTable }

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
	Metric  int // 0 is the kernel's choice, and the best
	// IfNone asks for the route only where the table has no other one to Dst:
	// the node's own default route belongs to the system. Of a route that the kernel
	// has it says that it is there for that, and goes when the system brings its own.
	IfNone bool
}

// IsDefault tells whether the route is that of everything nobody else has a route for.
func (r Route) IsDefault() bool { return r.Dst.Bits() == 0 }

// Protocol returns the number that marks the route as ours.
func (r Route) Protocol() int {
	if r.Table == PodsTable {
		return PodsProtocol
	}
	return Protocol
}

// leftInMain tells whether the route is that of a pod in the place where releases
// before PodsTable had it.
func (r Route) leftInMain() bool {
	return r.Table == MainTable && r.Dst.IsSingleIP() && !r.Gateway.IsValid()
}

// String returns the route as `ip route add` takes it.
func (r Route) String() string {
	var text strings.Builder
	text.WriteString(destinationText(r.Dst))
	if r.Gateway.IsValid() {
		fmt.Fprintf(&text, " via %s", r.Gateway)
	}
	fmt.Fprintf(&text, " dev %s", r.Dev)
	if r.Table != MainTable {
		fmt.Fprintf(&text, " table %d", r.Table)
	}
	fmt.Fprintf(&text, " proto %d", r.Protocol())
	if !r.Gateway.IsValid() {
		text.WriteString(" scope link")
	}
	if r.Metric != 0 {
		fmt.Fprintf(&text, " metric %d", r.Metric)
	}
	return text.String()
}

// Rule is a routing policy rule of ours.
type Rule struct {
	Priority   int
	IPv6       bool
	From, To   netip.Prefix // the zero prefix is "all"
	Mark, Mask uint32       // a zero Mask matches any mark
	Table      int
	HostOnly   bool // only host routes of the table count
	Earlier    bool // it carries the protocol that an earlier release gave it
}

// Protocol returns the number that marks the rule as ours. Rules for marks are of
// those that outlive a downgrade, see Firewall.Replies.
func (r Rule) Protocol() int {
	if r.Table == PodsTable || r.Priority == PriorityMark && !r.Earlier {
		return PodsProtocol
	}
	return Protocol
}

// podsRule is the rule that finds the node's pods before anything else. Without
// PodsTable, in a node cache of an earlier release, it looks through the main table.
func podsRule(s ipam.Settings, v6 bool) Rule {
	if s.PodsInMain {
		return Rule{Priority: PriorityPods, IPv6: v6, Table: MainTable, HostOnly: true}
	}
	// Host routes only: 100 is a number that people and other programs like too, and a
	// default route of theirs would take every packet of the node.
	return Rule{Priority: PriorityPods, IPv6: v6, Table: PodsTable, HostOnly: true}
}

// podsTable is where the settings want pods' host routes.
func podsTable(s ipam.Settings) int {
	if s.PodsInMain {
		return MainTable
	}
	return PodsTable
}

// String returns the rule as `ip rule` prints it.
func (r Rule) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d: from %s", r.Priority, orAll(r.From))
	if r.To.IsValid() {
		fmt.Fprintf(&text, " to %s", orAll(r.To))
	}
	if r.Mask != 0 {
		fmt.Fprintf(&text, " fwmark %#x/%#x", r.Mark, r.Mask)
	}
	if r.Table == MainTable {
		text.WriteString(" lookup main")
	} else {
		fmt.Fprintf(&text, " lookup %d", r.Table)
	}
	if r.HostOnly {
		fmt.Fprintf(&text, " suppress_prefixlength %d", r.SuppressPrefixLen())
	}
	fmt.Fprintf(&text, " proto %d", r.Protocol())
	return text.String()
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

// Link returns the link whose setting it is.
func (s Sysctl) Link() (dev string, ok bool) {
	parts := strings.Split(s.Key, "/") // net/ipv4/conf/LINK/rp_filter
	if len(parts) != 5 || parts[2] != "conf" {
		return "", false
	}
	return parts[3], true
}

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
