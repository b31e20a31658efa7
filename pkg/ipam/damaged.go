package ipam

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Distrust keeps addresses from new pods that are free here only because the old book, nil if
// there is none, has damaged records. Where such a record still names a pod of another plugin,
// of which the kernel shows nothing, that pod keeps the address: what is wrong with the record
// may be something else, and a pod that is gone is found out about as any is. All others that
// the old book lacks cool: a moment ago they may have been a pod's. Not just those that damaged
// records name, for that may be wrong, too.
func (s *State) Distrust(old *State, now time.Duration) {
	if old == nil || len(old.Damaged) == 0 {
		return
	}
	type hold struct { // of which an owner has one address
		eni.Key
		eni.Family
	}
	known, named, has := map[netip.Addr]bool{}, map[netip.Addr]*eni.Owner{}, map[hold]bool{}
	for _, a := range old.Addresses {
		known[a.Addr] = true
	}
	for _, d := range old.Damaged {
		if d.Owner != nil && d.Owner.Kind == eni.Delegated {
			named[d.Addr] = d.Owner
		}
	}
	for _, a := range s.Used() {
		has[hold{a.Owner.Key, a.Family()}] = true
	}
	for i, a := range s.Addresses {
		if a.State != eni.Free || known[a.Addr] {
			continue
		}
		state, owner := eni.Cooling, named[a.Addr]
		if owner != nil {
			if of := (hold{owner.Key, a.Family()}); has[of] {
				owner = nil
			} else {
				state, has[of] = eni.Used, true
			}
		}
		s.set(i, state, owner, now)
	}
}
