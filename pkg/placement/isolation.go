package placement

import "time"

// State is whether a subnet takes new ENIs.
type State string

// The states. Low: no new ENIs, those that lie there still grow. Full: nothing, until a retry.
const (
	Ready State = "Ready"
	Low   State = "Low"
	Full  State = "Full"
)

const (
	// firstRetry doubles with each refusal in a row, up to lastRetry.
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute

	// A subnet is Ready again once two describes that lie apart have shown this much more than
	// the least, and the cloud has refused nothing in between. With less apart or less more it
	// would come and go with every pod, for all nodes of the zone at once.
	apart  = time.Minute
	margin = 16
)

// Isolation is what became of a subnet, from describes and refusals. The zero Isolation is Ready.
type Isolation struct {
	State    State
	RetryAt  time.Duration // of Full
	Since    time.Duration // when it became Full
	refusals int           // in a row
	roomy    time.Duration // when a describe first showed enough room since the last refusal
	seen     bool          // whether one has
}

// Refused takes in that the cloud had no address left. A refusal of what was sent before the last
// retry counts once: calls that were under way together fail together.
func (i Isolation) Refused(now time.Duration) Isolation {
	if i.State == Full && now < i.RetryAt {
		i.seen = false
		return i
	}
	if i.State != Full {
		i.Since = now
	}
	i.State, i.seen = Full, false
	i.RetryAt = now + min(lastRetry, firstRetry<<min(i.refusals, 10))
	i.refusals++
	return i
}

// Described takes in how much room a describe shows that was sent at now.
func (i Isolation) Described(now time.Duration, room, isolateBelow int) Isolation {
	switch {
	case room <= 0:
		return i.Refused(now)
	case room < isolateBelow:
		i.seen = false
		if i.State != Full {
			i.State = Low
		}
		return i
	case i.State == Ready || i.State == "":
		i.State, i.refusals = Ready, 0
		return i
	case room < isolateBelow+margin:
		i.seen = false
		return i
	case !i.seen:
		i.seen, i.roomy = true, now
		return i
	case now-i.roomy < apart:
		return i
	}
	return Isolation{State: Ready}
}
