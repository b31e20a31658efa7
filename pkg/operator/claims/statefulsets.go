package claims

import (
	"time"

	"github.com/enipool/enipool/pkg/topology"
)

// sets are the StatefulSets, by the last lists of them.
type sets struct {
	last  map[Name]bool
	lacks map[Name]time.Time // those that the last lists lack, since the first of them
	at    time.Time
}

// setsApart is how long after a list the next one tells of the same StatefulSets: one of a name may have been made and deleted since.
const setsApart = 5 * time.Minute

// TakeSets takes in a complete list of the StatefulSets. What two of them lack, some time apart, is absent.
func (k *Known) TakeSets(list []Name, began time.Time) {
	if began.Sub(k.sets.at) > setsApart {
		clear(k.sets.lacks)
	}
	k.sets.last, k.sets.at = map[Name]bool{}, began
	for _, n := range list {
		k.sets.last[n] = true
		delete(k.sets.lacks, n)
	}
	for _, c := range k.claims {
		of := Name{c.Namespace, c.StatefulSet.Name}
		if _, before := k.sets.lacks[of]; c.Keep == topology.Fixed && !k.sets.last[of] && !before {
			k.sets.lacks[of] = began
		}
	}
	for at, is := range k.quiet.claims {
		if is.free {
			k.markClaim(at)
		}
	}
}

// setFacts says whether a claim's StatefulSet is there. Only a list from after the end of its pod tells that it is not: who makes one again, and has it replace
// the pods that it finds, is done before lists of before are a minute old.
func (k *Known) setFacts(c topology.Claim) topology.Presence {
	of := Name{c.Namespace, c.StatefulSet.Name}
	since, lacks := k.sets.lacks[of]
	switch {
	case k.sets.last[of]:
		return topology.Present
	case lacks && k.sets.at.Sub(since) >= k.settle && !c.FreeSince.IsZero() && k.sets.at.After(c.FreeSince):
		return topology.Absent
	}
	return topology.Unknown
}
