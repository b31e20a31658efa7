package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// SetAside reserves for each of the pods, which have no address yet, one of each family of those for any pod, as AssignPod would choose them, and frees what was
// set aside for other pods and was not taken. It is for namespaces in which a pod gets only what is reserved for it. A pod for which nothing is free has nothing
// set aside, and comes with a later call. It returns what it changed.
func (s *State) SetAside(pods []eni.Pod, now time.Duration) (set, freed []netip.Addr) {
	has := s.setAsideFor()
	for i := range s.Addresses {
		a := &s.Addresses[i]
		if a.State != eni.Reserved || !a.IsSetAside() {
			continue
		}
		of := podOf(a.Reservation)
		if slices.Contains(pods, of) && s.isComplete(has[of]) {
			continue
		}
		s.setState(i, eni.Cooling, nil, a.Since) // a plugin of before leaves what its pod had set aside, with the time of its end
		freed = append(freed, a.Addr)
	}
	for _, pod := range pods {
		if s.isComplete(has[pod]) {
			continue
		}
		_, at := s.chooseENI("", nil, now)
		for _, i := range at {
			a := &s.Addresses[i]
			s.setState(i, eni.Reserved, nil, now)
			a.Reservation = &eni.Reservation{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID}
			set = append(set, a.Addr)
		}
	}
	return set, freed
}

// setAsideFor returns the positions of what is set aside for each pod and not taken yet.
func (s *State) setAsideFor() map[eni.Pod][]int {
	has := map[eni.Pod][]int{}
	for i := range s.Addresses {
		if a := &s.Addresses[i]; a.State == eni.Reserved && a.IsSetAside() {
			of := podOf(a.Reservation)
			has[of] = append(has[of], i)
		}
	}
	return has
}

// isComplete tells whether these are one address of each family, all of one ENI: part of that is left of a write that was cut short, or when the cloud
// took one away.
func (s *State) isComplete(at []int) bool {
	if len(at) != len(s.Settings.Families) {
		return false
	}
	for _, f := range s.Settings.Families {
		if !slices.ContainsFunc(at, func(i int) bool { return s.Addresses[i].Family() == f && s.Addresses[i].ENI == s.Addresses[at[0]].ENI }) {
			return false
		}
	}
	return true
}

func podOf(r *eni.Reservation) eni.Pod {
	return eni.Pod{UID: r.UID, Namespace: r.Namespace, Name: r.Pod}
}
