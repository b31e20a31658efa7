package ipam

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Hold notes which addresses others hold, each with what holds it in the words of
// ip(8). Nobody gets them, and the cloud does not get them back, until Unhold. An
// address of a pod of ours stays the pod's, and one on its way back goes on: whoever
// knows that the cloud has not heard of it calls Restore before. It returns the
// addresses that were not held before.
func (s *State) Hold(causes map[netip.Addr]string, now time.Duration) []netip.Addr {
	var held []netip.Addr
	for i := range s.Addresses {
		a := &s.Addresses[i]
		cause, found := causes[a.Addr]
		switch {
		case !found || a.State == eni.Used || a.State == eni.Releasing:
		case a.State != eni.Held:
			s.set(i, eni.Held, nil, now)
			a.HeldBy = cause
			held = append(held, a.Addr)
		case a.HeldBy != cause:
			a.HeldBy = cause
			s.touched = append(s.touched, i)
		}
	}
	return held
}

// Unhold lets the pool have those of the addresses that others held, and returns
// them. They cool first: a moment ago they may have been a pod's.
func (s *State) Unhold(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.each(addrs, func(i int) bool {
		held := s.Addresses[i].State == eni.Held
		if held {
			s.set(i, eni.Cooling, nil, now)
		}
		return held
	})
}

// Forget takes those of the addresses that others held out of the book and returns them: neither the
// pool nor the cloud gets them. It changes the layout.
func (s *State) Forget(addrs []netip.Addr) []netip.Addr {
	return s.remove(addrs, eni.Held)
}

// Holds returns what others hold, in allocation order.
func (s *State) Holds() []eni.Address { return s.list(eni.Held) }

// HeldLine tells people who holds a held address, or what else keeps pods from it.
func HeldLine(a eni.Address) string { return fmt.Sprintf("%s is %s", a.Addr, HeldText(a.HeldBy)) }

// mostExamples keeps the text of a pod's event short.
const mostExamples = 3

// heldExamples returns the first of the held addresses with their causes, and how many
// more there are; "" if no cause is known.
func (s *State) heldExamples(keep func(eni.Address) bool) string {
	text, named, more := "", 0, 0
	for _, a := range s.Addresses {
		switch {
		case a.State != eni.Held || IsNoLink(a.HeldBy) || !keep(a):
		case a.HeldBy == "" || named == mostExamples:
			more++
		case named > 0:
			text += "; "
			fallthrough
		default:
			text += a.Addr.String() + ": " + a.HeldBy
			named++
		}
	}
	if named > 0 && more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
