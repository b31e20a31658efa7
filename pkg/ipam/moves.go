package ipam

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// ErrDuplicate is returned by Assign for an owner that already holds addresses.
var ErrDuplicate = errors.New("already holds an address")

// Exhausted is returned by Assign when no ENI can serve the owner. It carries
// the numbers that tell a person why.
type Exhausted struct {
	Families []eni.Family
	Device   string // the only ENI that was asked, "" for all
	ENIs     int
	Damaged  int
	Examples string // some of the held addresses with what holds each, "" if none is
	Ahead    int    // pending ADDs that came before and get what is free

	Unlinked int      // of the held addresses: their ENIs have no link on the node
	NoLinks  []string // why, one for each of those ENIs
	Count
}

// Error names every number, because this is what ends up in the pod's events.
func (e *Exhausted) Error() string {
	var b strings.Builder
	names := make([]string, len(e.Families))
	for i, f := range e.Families {
		names[i] = f.String()
	}
	fmt.Fprintf(&b, "no free %s address", strings.Join(names, "+"))
	if e.Device != "" {
		fmt.Fprintf(&b, " on %s", e.Device)
	}
	fmt.Fprintf(&b, ": %d addresses on %d ENIs, %d used, %d cooling", e.Total, e.ENIs, e.Used, e.Cooling)
	if e.Cooling > 0 {
		fmt.Fprintf(&b, " (next free in %s)", e.NextFree.Round(100*time.Millisecond))
	}
	if e.Releasing > 0 {
		fmt.Fprintf(&b, ", %d releasing", e.Releasing)
	}
	if e.Unlinked > 0 {
		fmt.Fprintf(&b, ", %d not usable (%s)", e.Unlinked, strings.Join(e.NoLinks, "; "))
	}
	if others := e.Held - e.Unlinked; others > 0 {
		fmt.Fprintf(&b, ", %d held by others", others)
		if e.Examples != "" {
			fmt.Fprintf(&b, " (%s)", e.Examples)
		}
	}
	if e.Damaged > 0 {
		fmt.Fprintf(&b, ", %d with a damaged record", e.Damaged)
	}
	if e.Ahead > 0 {
		pods := "pods"
		if e.Ahead == 1 {
			pods = "pod"
		}
		fmt.Fprintf(&b, "; %d %s waited before this one", e.Ahead, pods)
	}
	return b.String()
}

// Lease is what Assign gave, and how to take it back as if nothing had been.
type Lease struct {
	Interface eni.Interface
	Addresses []eni.Address // one a family, in the order of Settings.Families
	before    []eni.Address
}

// Assign gives the owner one address of each of the node's families, all from
// the earliest ENI that has them free; choose says which.
// A device limits the choice to the ENI with that link; "" allows all. It
// returns ErrDuplicate if the owner holds addresses already, or *Exhausted.
func (s *State) Assign(o eni.Owner, device string, now time.Duration) (Lease, error) {
	return s.AssignBehind(nil, o, device, now)
}

// checkNew returns ErrDuplicate if the owner holds an address.
func (s *State) checkNew(k eni.Key) error {
	if held := s.Find(k); len(held) > 0 {
		return fmt.Errorf("%s %w: %s", k, ErrDuplicate, held[0].Addr)
	}
	return nil
}

// find returns the ENI that would serve an owner and the positions of its addresses,
// nil if there is none.
func (s *State) find(device string, now time.Duration) (eni.Interface, []int) {
	for _, nic := range s.ENIs {
		if device != "" && nic.Device != device {
			continue
		}
		if at := s.choose(nic.Index, now); at != nil {
			return nic, at
		}
	}
	return eni.Interface{}, nil
}

// exhausted counts what there is on the device, or on all ENIs.
func (s *State) exhausted(device string, now time.Duration) *Exhausted {
	only := map[int]bool{}
	for _, nic := range s.ENIs {
		if device == "" || nic.Device == device {
			only[nic.Index] = true
		}
	}
	keep := func(a eni.Address) bool { return only[a.ENI] }
	unlinked, causes := s.unlinked(keep)
	return &Exhausted{Families: s.Settings.Families, Device: device, ENIs: len(only), Unlinked: unlinked, NoLinks: causes,
		Damaged: len(s.Damaged), Examples: s.heldExamples(keep), Count: s.Count(now, keep)}
}

func (s *State) take(nic eni.Interface, at []int, o eni.Owner, now time.Duration) Lease {
	l := Lease{Interface: nic}
	for _, i := range at {
		l.before = append(l.before, s.Addresses[i])
		s.set(i, eni.Used, &o, now)
		l.Addresses = append(l.Addresses, s.Addresses[i])
	}
	return l
}

func (s *State) set(i int, state eni.State, o *eni.Owner, now time.Duration) {
	a := &s.Addresses[i]
	a.State, a.Owner, a.Since, a.Lost, a.HeldBy = state, o, now, false, ""
	s.touched = append(s.touched, i)
}

// Undo takes a lease back as if it had never been given: the addresses were
// never seen by anybody, so they need no rest. Addresses that have gone to
// another owner since are left alone, lost ones go on to the cloud.
func (s *State) Undo(l Lease) {
	for i := range s.Addresses {
		for k, before := range l.before {
			a := s.Addresses[i]
			if a.Addr != before.Addr || a.State != eni.Used || a.Owner.Key != l.Addresses[k].Owner.Key {
				continue
			}
			if a.Lost {
				s.set(i, eni.Releasing, nil, a.Since)
				continue
			}
			s.Addresses[i] = before
			s.touched = append(s.touched, i)
		}
	}
}

// Release takes back every address of the owner and lets it cool. It returns
// what it released; for an owner without addresses that is nothing.
func (s *State) Release(k eni.Key, now time.Duration) []eni.Address {
	return s.ReleaseIf(func(a eni.Address) bool { return a.Owner.Key == k }, now)
}

// ReleaseIf takes back every used address for which gone returns true. Those that
// the cloud took away are nobody's any more.
func (s *State) ReleaseIf(gone func(eni.Address) bool, now time.Duration) []eni.Address {
	var released []eni.Address
	for i := range s.Addresses {
		a := s.Addresses[i]
		if a.State == eni.Used && gone(a) {
			released = append(released, a)
			if a.Lost {
				s.set(i, eni.Releasing, nil, now)
				continue
			}
			s.set(i, eni.Cooling, nil, now)
		}
	}
	return released
}
