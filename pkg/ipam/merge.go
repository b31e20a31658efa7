package ipam

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Merge makes the state that the node should have now. want lists settings, ENIs in ENI order
// (see choose.go) and their addresses, all free. Owners, cooldowns and what is held come from
// old; for addresses that old does not have, the owner comes from recovered, which is what the
// kernel shows. A nil old is an empty state.
//
// An ENI keeps its device index as long as it lives, because the routing tables and marks of
// running pods use it. A new one gets the index in want, or the lowest free one if that is taken.
//
// Merge refuses to drop or move an address that a pod uses, and names every such pod. A lost
// address stays its pod's on the ENI where it was, though another ENI may have it by now.
func Merge(old *State, want State, recovered map[netip.Addr]eni.Owner, now time.Duration) (*State, error) {
	if old == nil {
		old = &State{}
	}
	next := &State{Settings: want.Settings}
	if next.Settings.Gated == nil { // an inventory does not say it, and pods must not get past it meanwhile
		next.Settings.Gated = old.Settings.Gated
	}
	position, err := next.placeENIs(old, want.ENIs)
	if err != nil {
		return nil, err
	}
	known := map[netip.Addr]eni.Address{}
	for _, a := range old.Addresses {
		known[a.Addr] = a
	}
	var refused []error
	stays := false
	for _, address := range want.Addresses {
		index := position[address.ENI]
		was, had := known[address.Addr]
		delete(known, address.Addr)
		moved := had && was.ENI != index
		switch owner, live := recovered[address.Addr]; {
		case moved && was.Lost && next.hasIndex(was.ENI):
			address, index, stays = was, was.ENI, true
		case moved && was.State == eni.Used:
			refused = append(refused, fmt.Errorf("%s can't move to another ENI: %s uses it", address.Addr, was.Owner.PodName()))
		case had && (!moved || was.State == eni.Cooling || was.State == eni.Held || was.State == eni.Reserved):
			// Its cooldown, hold or reservation goes with it to another ENI.
			address = was
		case live:
			address = eni.Address{Addr: address.Addr, State: eni.Used, Since: now, Owner: &owner}
		default:
			address = eni.Address{Addr: address.Addr, State: eni.Free, Since: now}
		}
		address.ENI = index
		next.Addresses = append(next.Addresses, address)
	}
	for _, a := range old.Addresses {
		if _, dropped := known[a.Addr]; dropped && a.State == eni.Used {
			refused = append(refused, fmt.Errorf("%s can't be removed: %s uses it", a.Addr, a.Owner.PodName()))
		}
	}
	if stays {
		next.sortByENI()
	}
	refused = append(refused, refuseUnlisted(old, next, recovered)...)
	if err := errors.Join(refused...); err != nil {
		return nil, err
	}
	return next, next.Check()
}

// hasIndex tells whether an ENI has the device index.
func (s *State) hasIndex(index int) bool {
	_, ok := s.Interface(index)
	return ok
}

// sortByENI puts the addresses in the order of their ENIs, each ENI's as they are. Those of no ENI
// come last, for Check to name.
func (s *State) sortByENI() {
	position := map[int]int{}
	for i, nic := range s.ENIs {
		position[nic.Index] = i - len(s.ENIs)
	}
	slices.SortStableFunc(s.Addresses, func(a, b eni.Address) int { return cmp.Compare(position[a.ENI], position[b.ENI]) })
}

// refuseUnlisted returns a refusal for each address that only the kernel knows of and
// that would be dropped. What old knows about, old decides.
func refuseUnlisted(old, next *State, recovered map[netip.Addr]eni.Owner) []error {
	listed := map[netip.Addr]bool{}
	for _, a := range slices.Concat(old.Addresses, next.Addresses) {
		listed[a.Addr] = true
	}
	var refused []error
	for _, a := range slices.SortedFunc(maps.Keys(recovered), netip.Addr.Compare) {
		if !listed[a] {
			owner := recovered[a]
			refused = append(refused, fmt.Errorf("%s can't be left out: the kernel shows that %s uses it", a, owner.PodName()))
		}
	}
	return refused
}

// placeENIs puts the ENIs into the state in the order of wanted, with the indexes that old gave
// them, and returns which index each index of wanted has become.
func (s *State) placeENIs(old *State, wanted []eni.Interface) (map[int]int, error) {
	indexOf, taken := map[string]int{}, map[int]bool{}
	for _, nic := range old.ENIs {
		indexOf[nic.ID] = nic.Index
	}
	// Before any new ENI gets an index: one that asks for the index of an ENI that stays has
	// to yield, whichever comes first in wanted.
	for _, nic := range wanted {
		if i, ok := indexOf[nic.ID]; ok {
			taken[i] = true
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("no ENI: a node has at least its primary ENI")
	}
	if len(old.ENIs) > 0 && !taken[0] {
		primary, _ := old.Interface(0)
		return nil, fmt.Errorf("the primary ENI %s can't be removed", primary.ID)
	}
	final, free := map[int]int{}, 0
	for _, nic := range wanted {
		index, ok := indexOf[nic.ID]
		if !ok {
			if index = nic.Index; taken[index] {
				for taken[free] {
					free++
				}
				index = free
			}
			taken[index] = true
		}
		final[nic.Index] = index
		nic.Index = index
		s.ENIs = append(s.ENIs, nic)
	}
	return final, nil
}
