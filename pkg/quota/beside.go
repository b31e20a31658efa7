package quota

import (
	"math"
	"time"
)

// Beside returns what is left of a limit where others send so many requests per second: that comes off the rate, and the burst
// shrinks with it, since the others take from the same bucket. What a throttled action keeps is left at least, however many the
// others send: the operator has to go on, and the cloud refuses what is too much.
func (l Limit) Beside(others float64) Limit {
	if others <= 0 || l.PerSecond <= 0 {
		return l
	}
	rate := max(l.PerSecond-others, min(l.PerSecond, float64(leastRate)/1000))
	return Limit{Burst: max(1, int(math.Floor(float64(l.Burst)*rate/l.PerSecond))), PerSecond: rate}
}

// SetLimit gives an action another limit from now on. What throttling has taken of the rate stays taken, and comes back as usual.
func (b *Budget) SetLimit(action string, l Limit, now time.Duration) {
	b.bucketOf(action).setLimit(l, now)
}

func (b *bucket) setLimit(l Limit, now time.Duration) {
	b.advanceTo(now)
	to := newBucket(l, now)
	if b.rate >= b.nominal {
		b.rate = to.nominal
	}
	b.most, b.nominal = to.most, to.nominal
	b.level, b.rate = min(b.level, b.most), min(b.rate, b.nominal)
}
