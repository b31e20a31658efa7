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
}
