package agent

import (
	"math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/pool"
)

const (
	// eagerLook is how long after a describe the next one comes, about, while all subnets of
	// the node are empty and it has addresses for others or wants some: what one node releases
	// another one sees soon.
	eagerLook = 30 * time.Second

	// eagerLooks is how many describes come that soon after another on a node that has
	// addresses for others, enough for all of its steps down. Some it can't release, such as
	// those of a block of which a pod has one: it would look for ever.
	eagerLooks = 16

	// longestEager is how far that time doubles where pods wait: for as long as they do, nodes
	// with addresses for them are to see what becomes of each step.
	longestEager = time.Minute
)

// eagerness is why the node describes its subnets more often than it would, and how long so far.
type eagerness struct {
	spare  bool          // it has more than its pods need
	hungry bool          // its pods lack addresses
	looks  int           // describes since it began, or the subnet had some for a while
	draw   float64       // from 0 to 1: nodes don't look together
	from   time.Duration // when it began, 0 for not
}

// lookEagerly notes whether the node's subnets should be seen more often.
func (a *Agent) lookEagerly(s pool.Snapshot, have map[string]holding, now time.Duration) {
	spare := a.hasSpareInEmpty(have)
	hungry := a.demand.unserved() > a.demand.free && a.seesNone(s)
	switch e := &a.eager; {
	case !spare && !hungry:
		*e = eagerness{}
	case e.from == 0 || hungry && !e.hungry || spare && !e.spare:
		*e = eagerness{spare: spare, hungry: hungry, draw: a.Rand.Float64(), from: now}
	default:
		e.spare, e.hungry = spare, hungry
	}
}

// seesNone tells whether each subnet that could give more to a node whose pods lack some was seen without
// addresses and nothing that lasts was seen since, refused one, or has none since the node took the last itself.
func (a *Agent) seesNone(s pool.Snapshot) bool {
	candidates := a.candidates(s)
	for _, id := range candidates {
		c := a.scarce[id]
		n, known := a.view.subnet(id)
		lacks := known && n.Free <= 0 && !a.view.hides(n) || c != nil && c.refused
		if !(c != nil && c.empty > 0 || lacks) {
			return false
		}
	}
	return len(candidates) > 0
}

// due is when the next describe is, for one that started then.
func (e eagerness) due(start time.Duration) time.Duration {
	wait := eagerLook << min(max(0, e.looks-eagerLooks), 16)
	if e.hungry {
		wait = min(wait, longestEager)
	}
	return max(start, e.from) + time.Duration(float64(wait)*(0.75+e.draw/2))
}

// noteDescribe notes that a describe begins.
func (e *eagerness) noteDescribe(r *rand.Rand) {
	if e.from > 0 {
		e.looks++
		e.draw = r.Float64()
	}
}
