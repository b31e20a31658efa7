package ipam

import (
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// AssignBehind is Assign for an owner who came after others that wait: ahead has the
// device that each of them needs ("" for any), in order of arrival. What they are going
// to take is not to be had; what none of them can use is.
func (s *State) AssignBehind(ahead []string, o eni.Owner, device string, now time.Duration) (Lease, error) {
	if err := s.checkNew(o.Key); err != nil {
		return Lease{}, err
	}
	nic, at := s.findBehind(ahead, device, now)
	if at == nil {
		none := s.exhausted(device, now)
		none.Ahead = len(ahead)
		return Lease{}, none
	}
	return s.take(nic, at, o, now), nil
}

// findBehind is find after those ahead have taken theirs, each in turn.
func (s *State) findBehind(ahead []string, device string, now time.Duration) (eni.Interface, []int) {
	type kept struct {
		at    int
		state eni.State
	}
	var list []kept
	for _, need := range ahead {
		_, at := s.find(need, now)
		for _, i := range at {
			list = append(list, kept{i, s.Addresses[i].State})
			s.Addresses[i].State = eni.Releasing // which nobody is given
		}
	}
	nic, at := s.find(device, now)
	for _, k := range list {
		s.Addresses[k.at].State = k.state
	}
	return nic, at
}
