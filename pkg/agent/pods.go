package agent

import (
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// podSet is a set of pods. What tells pods apart is the UID, or where no runtime told
// it, namespace and name: a pod that was made anew under an old name has a UID of its
// own. The agent keeps one set for all ticks, as each of them needs it.
type podSet struct {
	uids  map[string]struct{}
	names map[podKey]struct{} // of those without a UID
}

type podKey struct{ namespace, name string }

func newPodSet() podSet {
	return podSet{uids: map[string]struct{}{}, names: map[podKey]struct{}{}}
}

func (s podSet) clear() {
	clear(s.uids)
	clear(s.names)
}

func (s podSet) add(o *eni.Owner) {
	if o.UID != "" {
		s.uids[o.UID] = struct{}{}
	} else {
		s.names[podKey{o.Namespace, o.Pod}] = struct{}{}
	}
}

func (s podSet) has(p eni.Pod) bool {
	_, known := s.uids[p.UID]
	if !known && len(s.names) > 0 {
		_, known = s.names[podKey{p.Namespace, p.Name}]
	}
	return known
}

// unheard returns how many of the pods have no record in the cache, and no ADD that
// waits: those are counted there, each of its own, and so is a record whose pod has
// gone. What remains was bound to the node a moment ago.
func (s podSet) unheard(pods []eni.Pod, cached *ipam.State, waiting []nodecache.PendingADD) int {
	if len(pods) == 0 {
		return 0
	}
	s.clear()
	for i := range cached.Addresses {
		switch line := &cached.Addresses[i]; {
		case line.State == eni.Used:
			s.add(line.Owner)
		case line.State == eni.Reserved && line.IsSetAside(): // it counts as used
			s.uids[line.Reservation.UID] = struct{}{}
		}
	}
	for i := range waiting {
		s.add(&waiting[i].Owner)
	}
	n := 0
	for _, p := range pods {
		if !s.has(p) {
			n++
		}
	}
	return n
}
