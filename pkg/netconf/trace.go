package netconf

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// HostRoute is a route to a single address in any table, whoever's it is.
type HostRoute struct {
	Dst      netip.Addr
	Gateway  netip.Addr
	Dev      string // "" for a route that leads nowhere
	Type     string // as ip(8) calls it: local, unreachable; "" for unicast
	Table    int
	Protocol int
}

// String returns the route as `ip route` shows it, with its table behind.
func (r HostRoute) String() string {
	var text strings.Builder
	text.WriteString("route ")
	if r.Type != "" {
		text.WriteString(r.Type + " ")
	}
	text.WriteString(r.Dst.String())
	if r.Gateway.IsValid() {
		fmt.Fprintf(&text, " via %s", r.Gateway)
	}
	if r.Dev != "" {
		fmt.Fprintf(&text, " dev %s", r.Dev)
	}
	if !r.Gateway.IsValid() && r.Type == "" {
		text.WriteString(" scope link")
	}
	fmt.Fprintf(&text, " (table %s)", tableName(r.Table))
	return text.String()
}

// HostRule is a routing policy rule about a single address, whoever's it is.
type HostRule struct {
	Priority int
	Addr     netip.Addr
	To       bool // to the address, else from it
	Table    int
	Protocol int
}

// String returns the rule as `ip rule` shows it.
func (r HostRule) String() string {
	way := "from"
	if r.To {
		way = "from all to"
	}
	return fmt.Sprintf("rule %d: %s %s lookup %s", r.Priority, way, r.Addr, tableName(r.Table))
}

// PodEnd is the node's end of a veth pair that is a pod's by its name.
type PodEnd struct {
	Dev   string
	Owner eni.Owner // from the alias; the zero Owner where that names none
	// Routed are the addresses with a route to the link. Inner are those on its other
	// end, where the pod may put what it likes: they count where no route tells.
	Routed, Inner []netip.Addr
	// Unread says why the other end could not be read, "" if it was or need not be:
	// then the link may be that of any address.
	Unread string
	// Known: its owner had an address before the kernel was read.
	Known bool
}

// isOurs tells whether the link carries the name of an owner of ours.
func (p PodEnd) isOurs() bool { return p.Owner.Key != eni.Key{} }

// claimedAddrs returns the addresses of a family that speak for themselves as the pod's.
func (p PodEnd) claimedAddrs(f eni.Family) []netip.Addr {
	var routed, inner []netip.Addr
	for _, a := range p.Routed {
		if eni.FamilyOf(a) == f {
			routed = append(routed, a)
		}
	}
	for _, a := range p.Inner {
		if eni.FamilyOf(a) == f && !a.IsLinkLocalUnicast() {
			inner = append(inner, a)
		}
	}
	if len(routed) > 0 {
		return routed
	}
	return inner
}

// String says whose link it is.
func (p PodEnd) String() string {
	if p.isOurs() {
		return fmt.Sprintf("link %s of %s", p.Dev, p.Owner.PodName())
	}
	return "link " + p.Dev
}

func tableName(table int) string {
	switch table {
	case MainTable:
		return "main"
	case LocalTable:
		return "local"
	}
	return fmt.Sprint(table)
}

// LocalTable is the kernel's table for the node's own addresses.
const LocalTable = 255

// Ours tells whether the route is ours by its protocol number.
func (r HostRoute) Ours() bool { return IsOurs(r.Protocol) }

// IsOurs tells whether what carries the protocol number is ours.
func IsOurs(protocol int) bool { return protocol == Protocol || protocol == PodsProtocol }
