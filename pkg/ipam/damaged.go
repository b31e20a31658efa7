package ipam

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Distrust keeps addresses from new pods that are free in s only because records of old are
// damaged. old may be nil.
//
// If a damaged record still names a pod of another plugin (bridge, macvlan), of which the kernel
// shows nothing, that pod keeps the address: the damage may be elsewhere in the record, and
// if the pod is gone, its stale allocation is found like any other. All other addresses that old
// lacks are cooling, because a moment ago they may have been a pod's: not only those that damaged
// records name, because that name may be what is damaged.
//
// What a damaged record may have kept for a pod stays reserved, for nobody: no other pod may get it, and the
// pod that it names may be what is damaged. Who reserved it names the pod again.
func (s *State) Distrust(old *State, now time.Duration) {
	if old == nil || len(old.Damaged) == 0 {
		return
	}
	type claim struct { // an owner has one address of each
		eni.Key
		eni.Family
	}
	known, named, has := map[netip.Addr]bool{}, map[netip.Addr]*eni.Owner{}, map[claim]bool{}
	for _, a := range old.Addresses {
		known[a.Addr] = true
	}
	for _, d := range old.Damaged {
		if d.Owner != nil && d.Owner.Kind == eni.Delegated {
			named[d.Addr] = d.Owner
		}
	}
	for _, a := range s.Used() {
		has[claim{a.Owner.Key, a.Family()}] = true
	}
	for i, a := range s.Addresses {
		if a.State != eni.Free || known[a.Addr] {
			continue
		}
		state, owner := eni.Cooling, named[a.Addr]
		if owner != nil {
			if of := (claim{owner.Key, a.Family()}); has[of] {
				owner = nil
			} else {
				state, has[of] = eni.Used, true
			}
		}
		s.setState(i, state, owner, now)
	}
	s.distrustReserved(old.Damaged, known, now)
}

// distrustReserved reserves for nobody what damaged records may have kept for a pod. Where a pod has the
// address it is so when that ends.
func (s *State) distrustReserved(damaged []Damage, known map[netip.Addr]bool, now time.Duration) {
	kept := map[netip.Addr]*eni.Reservation{}
	for _, d := range damaged {
		if d.Kept && !known[d.Addr] {
			kept[d.Addr] = &eni.Reservation{Topology: d.Topology}
		}
	}
	for i := range s.Addresses {
		a := &s.Addresses[i]
		r := kept[a.Addr]
		switch {
		case r == nil || a.Reservation != nil || a.Lost:
		case a.State == eni.Cooling: // since this rebuild, as all that was not known
			s.setState(i, eni.Reserved, nil, now)
			a.Reservation = r
		case a.State == eni.Used:
			a.Reservation = r
			s.touched = append(s.touched, i)
		}
	}
}
