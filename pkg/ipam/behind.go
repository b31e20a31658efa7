package ipam

import (
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// AssignPodBehind is AssignPod for a pod that came after pending ADDs: ahead has the device
// that each of them needs ("" for any), in order of arrival. The pod gets what they leave.
func (s *State) AssignPodBehind(ahead []string, o eni.Owner, device string, now time.Duration) (Lease, error) {
	if err := s.checkNew(o.Key); err != nil {
		return Lease{}, err
	}
	nic, at := s.chooseENIBehind(ahead, device, now)
	if at == nil {
		none := s.Exhaust(device, now)
		none.Ahead = len(ahead)
		return Lease{}, none
	}
	return s.setUsed(nic, at, o, now), nil
}
