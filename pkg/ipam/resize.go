package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Clone returns a copy that shares nothing that moves change.
func (s *State) Clone() *State {
	c := *s
	c.Settings.VPC = slices.Clone(s.Settings.VPC)
	c.Settings.Families, c.Settings.Gated = slices.Clone(s.Settings.Families), slices.Clone(s.Settings.Gated)
	c.ENIs, c.Addresses = slices.Clone(s.ENIs), slices.Clone(s.Addresses)
	c.Damaged, c.touched = slices.Clone(s.Damaged), nil
	return &c
}

// StartRelease makes those of the addresses that are free at now releasing, and returns them.
// Used and cooling ones stay as they are. The cloud is called after that: from now on no pod
// gets them, so the call can't take an address from a pod.
func (s *State) StartRelease(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		_, free := s.FreeSince(&s.Addresses[i], now)
		if free {
			s.setState(i, eni.Releasing, nil, now)
		}
		return free
	})
}

// CancelRelease makes those of the addresses that are releasing free again, or reserved again where they were, and returns them.
// It is for releases of which the cloud was not told yet.
func (s *State) CancelRelease(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		a := &s.Addresses[i]
		switch {
		case a.State != eni.Releasing:
			return false
		case a.Reservation != nil:
			s.setState(i, eni.Reserved, nil, now)
		default:
			s.setState(i, eni.Free, nil, now)
		}
		return true
	})
}

// MarkLost notes that the cloud took the addresses away: a used one stays its pod's and no pod
// gets it after that, all others become releasing. It returns those that it changed.
func (s *State) MarkLost(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		a := &s.Addresses[i]
		switch {
		case a.State == eni.Releasing || a.Lost:
			return false
		case a.State == eni.Used:
			a.Lost = true
			s.touched = append(s.touched, i)
		default:
			s.setState(i, eni.Releasing, nil, now)
		}
		return true
	})
}

// UnmarkLost is the opposite of MarkLost for used addresses: the cloud has them again.
func (s *State) UnmarkLost(addrs []netip.Addr) []netip.Addr {
	return s.changeEach(addrs, func(i int) bool {
		lost := s.Addresses[i].Lost
		if lost {
			s.Addresses[i].Lost = false
			s.touched = append(s.touched, i)
		}
		return lost
	})
}

// changeEach calls fn with the position of each of the addresses that the state has and
// returns those for which it returns true.
func (s *State) changeEach(addrs []netip.Addr, fn func(i int) bool) []netip.Addr {
	wanted := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		wanted[a] = true
	}
	var done []netip.Addr
	for i := range s.Addresses {
		if a := s.Addresses[i].Addr; wanted[a] && fn(i) {
			done = append(done, a)
		}
	}
	return done
}

// The moves below change the layout: a store has to write all records after
// them.

// AddENI puts an ENI at the end of the ENI order. One that is there already stays as it is.
func (s *State) AddENI(nic eni.Interface) error {
	for _, have := range s.ENIs {
		switch {
		case have.ID == nic.ID: // a call that is repeated after a crash
			return nil
		case have.Index == nic.Index || have.Device == nic.Device:
			return fmt.Errorf("add eni %s: eni %s still has its index %d or device %s", nic.ID, have.ID, nic.Index, nic.Device)
		}
	}
	if err := nic.Validate(); err != nil {
		return err
	}
	s.ENIs = append(s.ENIs, nic)
	return nil
}

// NarrowENIs has each ENI forget the ranges of one address that it has for an address of another
// subnet, and that it does not have any more.
func (s *State) NarrowENIs() {
	var has map[netip.Addr]bool
	for i := range s.ENIs {
		nic := &s.ENIs[i]
		if !slices.ContainsFunc(nic.Pods, netip.Prefix.IsSingleIP) {
			continue // nearly always
		}
		if has == nil {
			has = make(map[netip.Addr]bool, len(s.Addresses))
			for _, a := range s.Addresses {
				has[a.Addr] = true
			}
		}
		// Cloned, because the state that this one is a copy of may share the list.
		nic.Pods = slices.DeleteFunc(slices.Clone(nic.Pods), func(p netip.Prefix) bool { return p.IsSingleIP() && !has[p.Addr()] })
	}
}

// WidenENI lets the ENI have addresses of a family of which it had no primary address, and of more
// ranges for pods. It leaves out what Check would refuse, because no other change of the state
// could be written then.
func (s *State) WidenENI(by eni.Interface) {
	for i := range s.ENIs {
		nic := &s.ENIs[i]
		if nic.ID != by.ID {
			continue
		}
		if !nic.V4.IsValid() {
			nic.V4 = by.V4
		}
		if !nic.V6.IsValid() {
			nic.V6 = by.V6
		}
		for _, p := range by.Pods {
			// Cloned, because the state that this one is a copy of may share the list.
			if !slices.Contains(nic.Pods, p) && nic.ValidRange(p) == nil {
				nic.Pods = append(slices.Clone(nic.Pods), p)
			}
		}
	}
}

// AddAddresses puts addresses on the ENI with the index, after those it has. Addresses that the
// state has already stay as they are. Those in owners are used, the others free.
func (s *State) AddAddresses(index int, addrs []netip.Addr, owners map[netip.Addr]eni.Owner, now time.Duration) {
	have := make(map[netip.Addr]bool, len(s.Addresses))
	end, before := 0, map[int]bool{}
	for _, nic := range s.ENIs {
		before[nic.Index] = true
		if nic.Index == index {
			break
		}
	}
	for i, a := range s.Addresses {
		have[a.Addr] = true
		if before[a.ENI] {
			end = i + 1
		}
	}
	var added []eni.Address
	for _, addr := range addrs {
		if have[addr] {
			continue
		}
		have[addr] = true
		a := eni.Address{Addr: addr, ENI: index, State: eni.Free, Since: now}
		if owner, used := owners[addr]; used {
			a.State, a.Owner = eni.Used, &owner
		}
		added = append(added, a)
	}
	s.Addresses = slices.Insert(s.Addresses, end, added...) // keeps them grouped by ENI
}

// DropReleased removes the records of those of the addresses that are releasing, and returns them:
// the cloud has taken them.
func (s *State) DropReleased(addrs []netip.Addr) []netip.Addr {
	return s.dropInState(addrs, eni.Releasing)
}

// dropInState removes the records of those of the addresses that are in the given state, and returns
// them.
func (s *State) dropInState(addrs []netip.Addr, in eni.State) []netip.Addr {
	wanted := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		wanted[a] = true
	}
	var dropped []netip.Addr
	s.Addresses = slices.DeleteFunc(s.Addresses, func(a eni.Address) bool {
		drop := wanted[a.Addr] && a.State == in
		if drop {
			dropped = append(dropped, a.Addr)
		}
		return drop
	})
	return dropped
}

// DropLost removes an ENI that the cloud took away, with the lost addresses that pods still have:
// no pod gets them again, and their DEL works without a record. It refuses while the ENI has
// other addresses.
func (s *State) DropLost(id string) error {
	kept := s.Clone()
	at := slices.IndexFunc(kept.ENIs, func(nic eni.Interface) bool { return nic.ID == id })
	if at < 0 {
		return nil
	}
	index := kept.ENIs[at].Index
	kept.Addresses = slices.DeleteFunc(kept.Addresses, func(a eni.Address) bool { return a.ENI == index && a.Lost })
	if err := kept.DropENI(id); err != nil {
		return err
	}
	s.ENIs, s.Addresses = kept.ENIs, kept.Addresses
	return nil
}

// DropENI removes an ENI and its releasing addresses. It refuses while any of its addresses is in
// another state: a pod uses or may get it. An ENI that the state does not have is no error.
func (s *State) DropENI(id string) error {
	at := slices.IndexFunc(s.ENIs, func(nic eni.Interface) bool { return nic.ID == id })
	if at < 0 {
		return nil
	}
	index := s.ENIs[at].Index
	for _, a := range s.Addresses {
		if a.ENI == index && a.State != eni.Releasing {
			return fmt.Errorf("drop eni %s: its address %s is %s", id, a.Addr, a.State)
		}
	}
	s.Addresses = slices.DeleteFunc(s.Addresses, func(a eni.Address) bool { return a.ENI == index })
	s.ENIs = slices.Delete(s.ENIs, at, at+1)
	return nil
}
