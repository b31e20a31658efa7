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

// Merge makes the book for what the node should have now. want lists settings,
// ENIs in creation order and their addresses, all free. Owners, cooling times and
// what others hold come from old, or for addresses that old lost from recovered (what the kernel
// shows). A nil old is an empty book. An ENI keeps its device index for life,
// because the tables and marks of running pods hang on it; a new one gets the
// wanted index, or the lowest free one where another ENI has that.
//
// It refuses, naming every reason, to drop or move an address that a pod uses. One that the
// cloud took away under a pod stays the pod's where it was, though another ENI may have it by now.
func Merge(old *State, want State, recovered map[netip.Addr]eni.Owner, now time.Duration) (*State, error) {
	if old == nil {
		old = &State{}
	}
	next := &State{Settings: want.Settings}
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
	for _, a := range want.Addresses {
		index := position[a.ENI]
		was, had := known[a.Addr]
		delete(known, a.Addr)
		moved := had && was.ENI != index
		switch owner, live := recovered[a.Addr]; {
		case moved && was.Lost && next.hasIndex(was.ENI):
			a, index, stays = was, was.ENI, true
		case moved && was.State == eni.Used:
			refused = append(refused, fmt.Errorf("%s can't move to another ENI: %s uses it", a.Addr, was.Owner.PodName()))
		case had && (!moved || was.State == eni.Cooling || was.State == eni.Held): // it rests, or others hold it, wherever it is
			a = was
		case live:
			a = eni.Address{Addr: a.Addr, State: eni.Used, Since: now, Owner: &owner}
		default:
			a = eni.Address{Addr: a.Addr, State: eni.Free, Since: now}
		}
		a.ENI = index
		next.Addresses = append(next.Addresses, a)
	}
	for _, a := range old.Addresses {
		if _, dropped := known[a.Addr]; dropped && a.State == eni.Used {
			refused = append(refused, fmt.Errorf("%s can't be removed: %s uses it", a.Addr, a.Owner.PodName()))
		}
	}
	if stays {
		next.sort()
	}
	refused = append(refused, unlisted(old, next, recovered)...)
	if err := errors.Join(refused...); err != nil {
		return nil, err
	}
	return next, next.Check()
}

func (s *State) hasIndex(index int) bool {
	_, ok := s.Interface(index)
	return ok
}

// sort puts the addresses in the order of their ENIs, each ENI's as they are. Those of no ENI
// come last, for Check to name.
func (s *State) sort() {
	position := map[int]int{}
	for i, nic := range s.ENIs {
		position[nic.Index] = i - len(s.ENIs)
	}
	slices.SortStableFunc(s.Addresses, func(a, b eni.Address) int { return cmp.Compare(position[a.ENI], position[b.ENI]) })
}

// unlisted returns a refusal for each address that only the kernel knows of and
// that would be dropped. What old knows about, old decides.
func unlisted(old, next *State, recovered map[netip.Addr]eni.Owner) []error {
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

// placeENIs sets ENIs in the wanted order with the indexes that old gave them,
// and returns the final index for each index used in wanted.
func (s *State) placeENIs(old *State, wanted []eni.Interface) (map[int]int, error) {
	indexOf, taken := map[string]int{}, map[int]bool{}
	for _, nic := range old.ENIs {
		indexOf[nic.ID] = nic.Index
	}
	for _, nic := range wanted {
		if i, ok := indexOf[nic.ID]; ok {
			taken[i] = true
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("no ENI: a node has at least its own")
	}
	if len(old.ENIs) > 0 && !taken[0] {
		own, _ := old.Interface(0)
		return nil, fmt.Errorf("the node's own ENI %s can't be removed", own.ID)
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
