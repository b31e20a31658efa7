package quota

import (
	"maps"
	"slices"
	"time"
)

// Budget is what an account and region lets the operator request, by action. It is one for all
// nodes, and nothing else may send requests that count.
type Budget struct {
	buckets map[string]*bucket
	other   Limit // of actions that it was not told of
	empty   bool  // buckets begin with nothing
	from    time.Duration
}

// NewBudget returns a full budget. An action without a limit gets other.
func NewBudget(limits map[string]Limit, other Limit, now time.Duration) *Budget {
	return newBudget(limits, other, now, false)
}

// NewEmptyBudget returns a budget that has nothing at first: what passes from now on is the rate's, until the buckets are full.
func NewEmptyBudget(limits map[string]Limit, other Limit, now time.Duration) *Budget {
	return newBudget(limits, other, now, true)
}

func newBudget(limits map[string]Limit, other Limit, now time.Duration, empty bool) *Budget {
	b := &Budget{buckets: map[string]*bucket{}, other: other, empty: empty, from: now}
	for action, l := range limits {
		b.add(action, l)
	}
	return b
}

func (b *Budget) add(action string, l Limit) {
	k := newBucket(l, b.from)
	if b.empty {
		k.level = 0
	}
	b.buckets[action] = k
}

func (b *Budget) bucketOf(action string) *bucket {
	if b.buckets[action] == nil {
		b.add(action, b.other)
	}
	return b.buckets[action]
}

// Take takes the token for one request, and tells whether there was one.
func (b *Budget) Take(action string, now time.Duration) bool {
	return b.bucketOf(action).take(now)
}

// Refund puts back the token of a request that was not sent after all.
func (b *Budget) Refund(action string, now time.Duration) { b.bucketOf(action).refund(now) }

// Next returns when to ask Take again: now if there is a token, else when there may be one.
func (b *Budget) Next(action string, now time.Duration) time.Duration {
	return b.bucketOf(action).nextToken(now)
}

// Throttled takes in that the cloud refused a request of the action for their number.
// retryAfter is how long the cloud asks to wait, 0 if it does not say.
func (b *Budget) Throttled(action string, now, retryAfter time.Duration) {
	b.bucketOf(action).throttle(now, retryAfter)
}

// State is what is left of an action's budget.
type State struct {
	Action    string
	Tokens    float64       // requests that may be sent at once
	PerSecond float64       // of now
	Nominal   float64       // per second, without the throttling of the last minutes
	Closed    time.Duration // how long nothing is sent, 0 if it is open
}

// States returns what is left of all actions, by name.
func (b *Budget) States(now time.Duration) (list []State) {
	for _, action := range slices.Sorted(maps.Keys(b.buckets)) {
		k := b.buckets[action]
		k.advanceTo(now)
		list = append(list, State{Action: action, Tokens: float64(k.level) / token, PerSecond: float64(k.rate) / 1000,
			Nominal: float64(k.nominal) / 1000, Closed: max(0, k.closed-now)})
	}
	return list
}
