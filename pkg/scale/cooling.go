package scale

import "time"

// coolingState is how many addresses cooled down lately.
type coolingState struct {
	Series
	Count int `json:"count"` // holds until the next sample
}

// withSample takes a sample, passed seconds after the one before. The first one counts all that the
// pool has beyond Most: an agent that starts takes it for what cooled down before. Where Most is
// all that the node can hold, nothing is noted.
func (k coolingState) withSample(c Config, passed int, o Observation) coolingState {
	if o.Room <= o.Most {
		return coolingState{}
	}
	now := o.Cooling
	if k.Newest.Seconds == 0 {
		now = max(now, o.Owned-o.Most)
	}
	k.Series = k.sample(now, passed, k.Count, seconds(max(c.Delay, time.Second)))
	k.Count = o.Cooling
	return k
}

// peak returns the most of the newest w seconds, and how many seconds ago it was there last.
func (k coolingState) peak(w int) (most, ago int) {
	if most, ago = k.highest(w); most <= k.Count {
		return k.Count, 0
	}
	return most, ago
}

// mostNow returns how many addresses the node can hold, with those that cooled down lately. As
// they come and go with each pod that is replaced, the highest number of Delay counts: the pool
// would shrink and grow with them.
func (s State) mostNow(c Config, o Observation) int {
	cooling, _ := s.Cooling.peak(seconds(c.Delay))
	return max(o.Most, min(o.Room, o.Most+cooling))
}
