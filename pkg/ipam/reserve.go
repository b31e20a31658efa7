package ipam

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// An address is kept for one pod, or for the next one of a topology, as Reserved; a pod that takes what is
// kept for it claims it. What follows holds between any two moves:
//   - no pod gets an address that is kept for another one, and none gets what is kept for nobody yet;
//   - the end of a pod makes what it claimed Reserved again: the same pod may have it at once, as its
//     peers know it. Another pod gets it by Reserve, which keeps to the cool-down;
//   - it goes back to the cloud by Unreserve alone, and so its ENI stays. It is never any pod's on the way.

// Reserve keeps addresses as wanted says, and returns those that it changed. It leaves out what may not be that
// yet (CanReserve): who asks for it asks again then. What cools after a pod of before is kept for nobody until it has.
func (s *State) Reserve(wanted map[netip.Addr]eni.Reservation, now time.Duration) []netip.Addr {
	var changed []netip.Addr
	for i := range s.Addresses {
		a := &s.Addresses[i]
		r, wants := wanted[a.Addr]
		if !wants || !s.CanReserve(a, r, now) {
			continue
		}
		since, free := s.FreeSince(a, now)
		switch {
		case free: // as long ago as if it had cooled since: it may be another pod's at once
			s.setState(i, eni.Reserved, nil, max(0, since-s.Settings.CoolDown))
		case a.State == eni.Cooling:
			s.setState(i, eni.Reserved, nil, a.Since)
			r = eni.Reservation{Topology: r.Topology}
		default:
			s.touched = append(s.touched, i)
		}
		a.Reservation = &r
		changed = append(changed, a.Addr)
	}
	return changed
}

// CanReserve tells whether Reserve changes the address at now. It does not where it is kept so, where it is kept for another pod
// and has not cooled since, and where another pod or others have it.
func (s *State) CanReserve(a *eni.Address, r eni.Reservation, now time.Duration) bool {
	if a.Reservation != nil && *a.Reservation == r {
		return false
	}
	switch a.State {
	case eni.Free, eni.Cooling:
		return true
	case eni.Used:
		return !a.Lost && (r.IsNobodys() || r.IsFor(*a.Owner))
	case eni.Reserved:
		same := a.Reservation.Namespace == r.Namespace && a.Reservation.Pod == r.Pod
		return same || r.IsNobodys() || s.hasCooled(a, now)
	}
	return false
}

// Unreserve makes those of the addresses that are kept for a pod releasing, and returns them. It leaves out what a pod has, and what
// has not cooled since: who asks for it asks again then (CanUnreserve).
func (s *State) Unreserve(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		can := s.CanUnreserve(&s.Addresses[i], now)
		if can {
			s.setState(i, eni.Releasing, nil, now)
		}
		return can
	})
}

// CanUnreserve tells whether Unreserve changes the address at now.
func (s *State) CanUnreserve(a *eni.Address, now time.Duration) bool {
	return a.State == eni.Reserved && s.hasCooled(a, now)
}

// hasCooled tells whether a reserved address has cooled since its last pod.
func (s *State) hasCooled(a *eni.Address, now time.Duration) bool {
	return s.Settings.CoolDown == 0 || a.Since+s.Settings.CoolDown <= now
}

// CooledAt is when the first of what is reserved and cools has cooled, 0 for none.
func (s *State) CooledAt(now time.Duration) (at time.Duration) {
	for i := range s.Addresses {
		if a := &s.Addresses[i]; a.State == eni.Reserved && a.IsKept() && !s.hasCooled(a, now) && (at == 0 || a.Since+s.Settings.CoolDown < at) {
			at = a.Since + s.Settings.CoolDown
		}
	}
	return at
}
