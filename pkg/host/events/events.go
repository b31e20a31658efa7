// Package events tells what changes in the network of the node: links, addresses,
// routes, rules, neighbours, settings and queues of links, and nftables. The kernel announces all
// of it by netlink; nothing is asked and nothing is changed here.
package events

import (
	"fmt"
	"net/netip"
	"slices"
)

// Kind is what kind of object changed.
type Kind uint8

// The kinds. Overflow is no object: so much changed at once that the kernel could not
// tell all of it, so anything may have.
const (
	Overflow Kind = iota
	Link
	Address
	Route
	Rule
	Neighbour
	Netconf // a setting of a link, such as rp_filter
	Qdisc   // a queue of a link
	Filter  // of traffic control
	Nftables
	Generation // a transaction of nftables ended: it comes behind what that changed
)

// String returns the word that ip(8) has for it.
func (k Kind) String() string {
	return [...]string{"overflow", "link", "address", "route", "rule", "neighbour", "sysctl", "qdisc", "filter", "nftables", "nftables generation"}[k]
}

// Event is one change. Fields that the kind does not have are zero.
type Event struct {
	Kind Kind
	Gone bool // the object was removed; else it was made or changed
	IPv6 bool

	// Prefix is a route's destination, the source that a rule selects, and an address or
	// a neighbour as a prefix of full length. Invalid: everything.
	Prefix netip.Prefix

	To netip.Prefix // the destination that a rule selects; invalid: everything

	Link     int    // index: of a route's, an address's or a neighbour's link, or the link itself; AllLinks
	Name     string // of the link
	Table    int    // of a route or a rule
	Priority int    // of a rule
	Protocol int    // of a route or a rule: who made it
	Unicast  bool   // a route that forwards, not one of the kernel's own for its addresses

	Replaced  bool // a route that took the place of another one
	Up        bool // the link is up
	Toggled   bool // the link went up or down
	Made      bool // the link is new
	Permanent bool // a neighbour that somebody configured

	Type string // of a queue or a filter: tbf, ingress, u32

	RPFilter, Forwarding int // settings: the new value, Unknown if it is not told

	NftTable, NftSet string // of what changed in nftables; NftSet: its elements did
	Text             []byte // of a message of nftables or of its generation: valid only until the next event
}

// AllLinks is the link of a setting that is for all.
const AllLinks = -1

// Unknown is a setting of which the event tells nothing.
const Unknown = -1

// Addr returns the address that the event is about where it is about a single one.
func (e Event) Addr() (netip.Addr, bool) {
	return e.Prefix.Addr(), e.Prefix.IsValid() && e.Prefix.IsSingleIP()
}

// Is tells whether the event is of one of the kinds, or says that anything may have
// changed.
func (e Event) Is(kinds ...Kind) bool { return e.Kind == Overflow || slices.Contains(kinds, e.Kind) }

// String says what happened, for people.
func (e Event) String() string {
	what := e.Kind.String()
	switch e.Kind {
	case Overflow:
		return "more changed at once than the kernel could tell"
	case Link:
		what += " " + e.Name
	case Address, Neighbour:
		what += " " + e.Prefix.Addr().String()
	case Route:
		what += " " + e.prefixText("default") + fmt.Sprintf(" table %d", e.Table)
	case Rule:
		to := ""
		if e.To.IsValid() {
			to = " to " + e.To.String()
		}
		what += fmt.Sprintf(" %d: from %s%s lookup %d", e.Priority, e.prefixText("all"), to, e.Table)
	case Netconf:
		return what + e.settingsText() // the values say what changed
	case Qdisc, Filter:
		what += fmt.Sprintf(" %s of link %d", e.Type, e.Link)
	case Nftables:
		what += " table " + e.NftTable
		if e.NftSet != "" {
			what += " set " + e.NftSet
		}
	}
	return what + " " + e.verbText()
}

func (e Event) verbText() string {
	switch {
	case e.Gone:
		return "removed"
	case e.Kind == Link && e.Toggled && e.Up:
		return "set up"
	case e.Kind == Link && e.Toggled:
		return "set down"
	case e.Replaced:
		return "replaced"
	}
	return "added or changed"
}

// prefixText is the prefix, or the word for all there is of the family.
func (e Event) prefixText(all string) string {
	switch {
	case e.Prefix.IsValid():
		return e.Prefix.String()
	case e.IPv6:
		return all + " (IPv6)"
	}
	return all
}

func (e Event) settingsText() (text string) {
	if e.RPFilter != Unknown {
		text += fmt.Sprintf(" rp_filter=%d", e.RPFilter)
	}
	if e.Forwarding != Unknown {
		text += fmt.Sprintf(" forwarding=%d", e.Forwarding)
	}
	if e.Link == AllLinks {
		return text + " of all links"
	}
	return text + fmt.Sprintf(" of link %d", e.Link)
}
