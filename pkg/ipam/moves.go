package ipam

import (
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// ErrDuplicate is returned by AssignPod for an owner that already holds addresses.
var ErrDuplicate = errors.New("already holds an address")

// Lease is what AssignPod gave, with the records as they were before, for UndoLease.
type Lease struct {
	Interface eni.Interface
	Addresses []eni.Address // one per family, in the order of Settings.Families
	before    []eni.Address
}

// AssignPod gives a pod's interface one address of each of the node's families, all of one
// ENI: chooseENI says which. A device limits the choice to the ENI with that link; "" allows
// all. Errors: ErrDuplicate if the owner has addresses already, *Exhausted if none are free.
func (s *State) AssignPod(o eni.Owner, device string, now time.Duration) (Lease, error) {
	return s.AssignPodBehind(nil, o, device, now)
}

// checkNew returns ErrDuplicate if the owner holds an address.
func (s *State) checkNew(k eni.Key) error {
	if owned := s.OwnedBy(k); len(owned) > 0 {
		return fmt.Errorf("%s %w: %s", k, ErrDuplicate, owned[0].Addr)
	}
	return nil
}

// setUsed gives the addresses at the positions to the owner.
func (s *State) setUsed(nic eni.Interface, at []int, o eni.Owner, now time.Duration) Lease {
	l := Lease{Interface: nic}
	for _, i := range at {
		l.before = append(l.before, s.Addresses[i])
		s.setState(i, eni.Used, &o, now)
		l.Addresses = append(l.Addresses, s.Addresses[i])
	}
	return l
}

// setState changes a record and notes it for the store. Who owned or held the address before is
// forgotten: a later owner must not inherit that it was lost. A reservation outlives its pods.
func (s *State) setState(i int, state eni.State, o *eni.Owner, now time.Duration) {
	a := &s.Addresses[i]
	a.State, a.Owner, a.Since, a.Lost, a.HeldBy = state, o, now, false, ""
	if state == eni.Free || state == eni.Cooling || state == eni.Held || state == eni.Releasing && a.IsSetAside() {
		a.Reservation = nil
	}
	s.touched = append(s.touched, i)
}

// UndoLease puts the records of a lease back to what they were before: nobody has seen the
// addresses, so they need no cooldown. It skips addresses that have another owner by now;
// those that the cloud took away meanwhile become releasing.
func (s *State) UndoLease(l Lease) {
	for i := range s.Addresses {
		for k, before := range l.before {
			a := s.Addresses[i]
			if a.Addr != before.Addr || a.State != eni.Used || a.Owner.Key != l.Addresses[k].Owner.Key {
				continue
			}
			if a.Lost {
				s.setState(i, eni.Releasing, nil, a.Since)
				continue
			}
			s.Addresses[i] = before
			s.touched = append(s.touched, i)
		}
	}
}

// Free frees every address of the owner: it is cooling from now on, or reserved as before if it was claimed. One that was set aside for the owner's pod is
// cooling too: another pod may have that name next, and a runtime that does not tell uids would give it to that one.
// It returns what it freed, nothing for an owner without addresses.
func (s *State) Free(k eni.Key, now time.Duration) []eni.Address {
	return s.FreeIf(func(a eni.Address) bool { return a.Owner.Key == k }, now)
}

// FreeIf frees every used address for which gone returns true. Lost ones become releasing:
// the cloud has them already, so no pod may get them.
func (s *State) FreeIf(gone func(eni.Address) bool, now time.Duration) []eni.Address {
	var freed []eni.Address
	for i := range s.Addresses {
		a := s.Addresses[i]
		if a.State == eni.Used && gone(a) {
			freed = append(freed, a)
			switch {
			case a.Lost:
				s.setState(i, eni.Releasing, nil, now)
			case a.IsClaimed():
				s.setState(i, eni.Reserved, nil, now)
			default:
				s.setState(i, eni.Cooling, nil, now)
			}
		}
	}
	return freed
}
