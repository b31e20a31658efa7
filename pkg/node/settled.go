package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Of each ENI and family at most askedPods pods are asked for, and none whose link is younger
// than othersLearn: until then a program that has rules for each pod may not know it.
const (
	askedPods   = 3
	othersLearn = 30 * time.Second
)

// settledPods returns addresses of pods that have had their links for long, the oldest first.
// Where there is none it returns an address for a pod to come, without an owner.
func settledPods(s *ipam.State, nic int, f eni.Family, links []string, now time.Duration) []eni.Address {
	var pods, others []eni.Address
	for _, a := range s.Addresses {
		switch {
		case a.ENI != nic || a.Family() != f || a.State == eni.Held:
		case a.State == eni.Used && slices.Contains(links, linkOf(a)) && now-a.Since >= othersLearn:
			pods = append(pods, a)
		default:
			a.Owner = nil
			others = append(others, a)
		}
	}
	slices.SortStableFunc(pods, func(a, b eni.Address) int { return cmp.Compare(a.Since, b.Since) })
	if len(pods) == 0 {
		return others[:min(1, len(others))]
	}
	return pods[:min(askedPods, len(pods))]
}

// linkOf returns the link of the address's pod, "" if it has none.
func linkOf(a eni.Address) string {
	if a.Owner == nil {
		return ""
	}
	return netconf.HostDevice(a.Owner.Key)
}
