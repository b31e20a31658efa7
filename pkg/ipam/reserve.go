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
//   - it is not released to the cloud, and so its ENI stays.

// Reserve keeps addresses as wanted says, and returns those that it changed. It leaves out what may not be that
// yet: what cools after a pod, what is kept for another pod and has not cooled since, and what another pod has.
// Who asks for it asks again then.
func (s *State) Reserve(wanted map[netip.Addr]eni.Reservation, now time.Duration) []netip.Addr {
	var changed []netip.Addr
	for i := range s.Addresses {
		a := &s.Addresses[i]
		r, wants := wanted[a.Addr]
		if !wants || a.Reservation != nil && *a.Reservation == r || !s.mayReserve(a, r, now) {
			continue
		}
		if since, free := s.FreeSince(a, now); free {
			// As long ago as if it had cooled since: it may be another pod's at once.
			s.setState(i, eni.Reserved, nil, max(0, since-s.Settings.CoolDown))
		} else {
			s.touched = append(s.touched, i)
		}
		a.Reservation = &r
		changed = append(changed, a.Addr)
	}
	return changed
}

// mayReserve tells whether the address can be kept as r says at now.
func (s *State) mayReserve(a *eni.Address, r eni.Reservation, now time.Duration) bool {
	_, free := s.FreeSince(a, now)
	switch a.State {
	case eni.Used:
		return !a.Lost && (r.IsNobodys() || r.IsFor(*a.Owner))
	case eni.Reserved:
		same := a.Reservation.Namespace == r.Namespace && a.Reservation.Pod == r.Pod
		return same || r.IsNobodys() || s.Settings.CoolDown == 0 || a.Since+s.Settings.CoolDown <= now
	}
	return free
}

// EndReservation makes those of the addresses that are kept for a pod any pod's, and returns them. What is reserved
// cools on as after its last pod; what is claimed stays its pod's and cools after that.
func (s *State) EndReservation(addrs []netip.Addr) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		a := &s.Addresses[i]
		if a.Reservation == nil {
			return false
		}
		if a.State == eni.Reserved {
			s.setState(i, eni.Cooling, nil, a.Since)
			return true
		}
		a.Reservation = nil
		s.touched = append(s.touched, i)
		return true
	})
}

// ReservedAddresses returns what is kept for pods that do not have it, in ENI order.
func (s *State) ReservedAddresses() []eni.Address { return s.inState(eni.Reserved) }
