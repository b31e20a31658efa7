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
	c.Settings.Families = slices.Clone(s.Settings.Families)
	c.ENIs, c.Addresses = slices.Clone(s.ENIs), slices.Clone(s.Addresses)
	c.Damaged, c.touched = slices.Clone(s.Damaged), nil
	return &c
}

// Drain sets those of the addresses that are free at now on their way back to the
// cloud and returns them. Used and cooling ones stay as they are.
func (s *State) Drain(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.each(addrs, func(i int) bool {
		_, free := s.FreeSince(&s.Addresses[i], now)
		if free {
			s.set(i, eni.Releasing, nil, now)
		}
		return free
	})
}

// Restore makes those of the addresses that are on their way back free again, and
// returns them. It is for releases that the cloud has not heard of.
func (s *State) Restore(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.each(addrs, func(i int) bool {
		releasing := s.Addresses[i].State == eni.Releasing
		if releasing {
			s.set(i, eni.Free, nil, now)
		}
		return releasing
	})
}

// Lose notes that the cloud took the addresses away: a used one stays its pod's
// and goes to nobody after it, others go at once. It returns what it changed.
func (s *State) Lose(addrs []netip.Addr, now time.Duration) []netip.Addr {
	return s.each(addrs, func(i int) bool {
		a := &s.Addresses[i]
		switch {
		case a.State == eni.Releasing || a.Lost:
			return false
		case a.State == eni.Used:
			a.Lost = true
			s.touched = append(s.touched, i)
		default:
			s.set(i, eni.Releasing, nil, now)
		}
		return true
	})
}

// Regain is the opposite of Lose for used addresses: the cloud has them again.
func (s *State) Regain(addrs []netip.Addr) []netip.Addr {
	return s.each(addrs, func(i int) bool {
		lost := s.Addresses[i].Lost
		if lost {
			s.Addresses[i].Lost = false
			s.touched = append(s.touched, i)
		}
		return lost
	})
}

// each calls fn with the position of each of the addresses that the book has and
// returns those for which it returns true.
func (s *State) each(addrs []netip.Addr, fn func(i int) bool) []netip.Addr {
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

// The moves below change the layout: a store has to write the whole book after
// them.

// AddENI puts an ENI at the end of the order. One that is there already stays as
// it is.
func (s *State) AddENI(nic eni.Interface) error {
	for _, have := range s.ENIs {
		switch {
		case have.ID == nic.ID:
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

// Widen lets the ENI have addresses of a family that it had no primary address of, and of more
// ranges for pods. What Check would refuse is left out: it would keep all else out of the book, too.
func (s *State) Widen(by eni.Interface) {
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
			if !slices.Contains(nic.Pods, p) && nic.ValidRange(p) == nil {
				nic.Pods = append(slices.Clone(nic.Pods), p)
			}
		}
	}
}

// Add puts addresses on the ENI with the index, behind those it has; what the
// book has already is left alone. Those that owners knows are used, the others
// free.
func (s *State) Add(index int, addrs []netip.Addr, owners map[netip.Addr]eni.Owner, now time.Duration) {
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
	var lines []eni.Address
	for _, addr := range addrs {
		if have[addr] {
			continue
		}
		have[addr] = true
		a := eni.Address{Addr: addr, ENI: index, State: eni.Free, Since: now}
		if owner, used := owners[addr]; used {
			a.State, a.Owner = eni.Used, &owner
		}
		lines = append(lines, a)
	}
	s.Addresses = slices.Insert(s.Addresses, end, lines...)
}

// Drop takes those of the addresses that are on their way back out of the book
// and returns them.
func (s *State) Drop(addrs []netip.Addr) []netip.Addr { return s.remove(addrs, eni.Releasing) }

// remove takes those of the addresses that are in the state out of the book and returns them.
func (s *State) remove(addrs []netip.Addr, in eni.State) []netip.Addr {
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

// DropLost takes an ENI that the cloud took away out of the book, with the lost
// addresses that pods still have: nobody gets them again, and their DEL works
// without a record. It refuses while the ENI has others.
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

// DropENI takes an ENI that carries nothing any more out of the book. It refuses
// while a pod uses one of its addresses or one rests; those on their way back go
// with it. One that the book does not have is fine.
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
