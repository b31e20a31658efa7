package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// mostCells bounds the page: an instance with prefixes may have thousands of addresses, most of which are free.
const mostCells = 1000

// eniCard is an ENI with a cell for each of its addresses.
type eniCard struct {
	Number int // of the card on the page
	Name   string
	About  string
	Cells  []cell
	Pods   []cell // those that are not just free
	More   string // what of it is not shown
}

// cell is an address. Kind is a letter, which the page shows beside the colour.
type cell struct {
	Kind, Letter string
	Addr         string
	Text         string // all of it in a line
	What, Whose  string
	Since        string
	kind         cellKind
}

// cellKind is what people call the state of an address.
type cellKind struct{ letter, name, means string }

// The kinds, in the order of the legend. A letter is the class of its colour as well.
var (
	usedKind      = cellKind{"u", "used", "a pod has it"}
	freeKind      = cellKind{"f", "free", "the next pod may have it"}
	coolingKind   = cellKind{"c", "cooling", "a pod had it until a moment ago"}
	reservedKind  = cellKind{"k", "reserved", "kept for a certain pod"}
	releasingKind = cellKind{"r", "releasing", "on its way back to the cloud"}
	lostKind      = cellKind{"l", "lost", "a pod has it and the cloud took it away"}
	heldKind      = cellKind{"h", "held", "another program on the node has it"}
	unlinkedKind  = cellKind{"n", "no link", "its ENI has no link on the node"}
	damagedKind   = cellKind{"d", "damaged", "its record in the node cache can't be read"}
	cellKinds     = []cellKind{usedKind, freeKind, coolingKind, reservedKind, releasingKind, lostKind, heldKind, unlinkedKind, damagedKind}
)

// kindOf returns what people call the address's state now.
func kindOf(s *ipam.State, a *eni.Address, now time.Duration) cellKind {
	_, free := s.FreeSince(a, now)
	switch {
	case a.Lost: // it is used as well, which is of less interest
		return lostKind
	case free:
		return freeKind
	case a.State == eni.Used:
		return usedKind
	case a.State == eni.Cooling:
		return coolingKind
	case a.State == eni.Releasing:
		return releasingKind
	case a.State == eni.Reserved:
		return reservedKind
	case ipam.IsNoLink(a.HeldBy):
		return unlinkedKind
	}
	return heldKind
}

// cellOf returns the cell of an address.
func cellOf(s *ipam.State, a *eni.Address, now time.Duration) cell {
	since := a.Since
	if from, free := s.FreeSince(a, now); free {
		since = from
	}
	kind, age := kindOf(s, a, now), max(now-since, 0).Truncate(time.Second).String()
	c := cell{Kind: kind.letter, Letter: strings.ToUpper(kind.letter), Addr: a.Addr.String(), What: kind.name, Since: age, kind: kind}
	switch {
	case a.Owner != nil:
		c.Whose = a.Owner.PodName()
	case a.Reservation != nil:
		c.Whose = a.Reservation.PodName()
	case a.State == eni.Held:
		c.Whose = a.HeldBy
	}
	c.Text = strings.Join(slices.DeleteFunc([]string{c.Addr, c.What, c.Whose, "for " + age}, func(s string) bool { return s == "" }), " ")
	return c
}

// cardsOf returns the node's ENIs, and how many addresses are of which kind.
func cardsOf(s *ipam.State, now time.Duration) (cards []eniCard, counts map[string]int) {
	counts, room := map[string]int{}, mostCells
	for i, nic := range s.ENIs {
		card, all, used := eniCard{Number: i, Name: cmp.Or(nic.Device, nic.ID)}, 0, 0
		for at := range s.Addresses {
			a := &s.Addresses[at]
			if a.ENI != nic.Index {
				continue
			}
			c := cellOf(s, a, now)
			counts[c.Kind]++
			if all++; c.kind == usedKind || c.kind == lostKind {
				used++
			}
			if room == 0 {
				continue // counted all the same
			}
			room--
			card.Cells = append(card.Cells, c)
			if c.kind != freeKind {
				card.Pods = append(card.Pods, c)
			}
		}
		card.About = fmt.Sprintf("%s, %d of %d addresses used", nic.ID, used, all)
		if more := all - len(card.Cells); more > 0 {
			card.More = fmt.Sprintf("%d more addresses are not shown: enipoolctl pool show -o wide lists all", more)
		}
		cards = append(cards, card)
	}
	counts[damagedKind.letter] += len(s.Damaged)
	return cards, counts
}
