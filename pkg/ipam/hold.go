package ipam

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// MarkHeld notes which addresses are held: another program on the node uses them, or their
// ENI has no link. causes has what holds each one, in the words of ip(8). Until CoolHeld no pod
// gets them and they are not released to the cloud. An address of a pod stays the pod's, one
// that is reserved stays so, since nobody else says for whom, and a releasing one stays
// releasing: who knows that the cloud was not called yet calls CancelRelease before. It returns the addresses that were not held before.
func (s *State) MarkHeld(causes map[netip.Addr]string, now time.Duration) []netip.Addr {
	var held []netip.Addr
	for i := range s.Addresses {
		a := &s.Addresses[i]
		cause, found := causes[a.Addr]
		switch {
		case !found || a.State == eni.Used || a.State == eni.Releasing || a.State == eni.Reserved:
		case a.State != eni.Held:
			s.setState(i, eni.Held, nil, now)
			a.HeldBy = cause
			held = append(held, a.Addr)
		case a.HeldBy != cause:
			a.HeldBy = cause
			s.touched = append(s.touched, i)
		}
	}
	return held
}

// CoolHeld ends the hold of those of the addresses that are held, and returns them. They are
// cooling first: a moment ago they may have been a pod's.
func (s *State) CoolHeld(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		held := s.Addresses[i].State == eni.Held
		if held {
			s.setState(i, eni.Cooling, nil, now)
		}
		return held
	})
}

// DropHeld removes the records of those of the addresses that are held, and returns them:
// no pod gets them, and they are not released to the cloud. It changes the layout.
func (s *State) DropHeld(addrs []netip.Addr) []netip.Addr {
	return s.dropInState(addrs, eni.Held)
}

// HeldAddresses returns the held addresses, in ENI order.
func (s *State) HeldAddresses() []eni.Address { return s.inState(eni.Held) }

// HeldLine tells people what holds an address, or what else keeps pods from it.
func HeldLine(a eni.Address) string { return fmt.Sprintf("%s is %s", a.Addr, HeldText(a.HeldBy)) }

// mostExamples keeps the text of a pod's event short.
const mostExamples = 3

// heldExamples returns the first of the held addresses with their causes, and how many
// more there are; "" if no cause is known.
func (s *State) heldExamples(keep func(eni.Address) bool) string {
	text, named, more := "", 0, 0
	for _, a := range s.Addresses {
		switch {
		case a.State != eni.Held || IsNoLink(a.HeldBy) || !keep(a): // countUnlinked tells of those without a link
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
