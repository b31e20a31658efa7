package quota

import (
	"math"
	"time"
)

// Limit is what a cloud lets an account pass of one action: Burst requests at once, and
// PerSecond more. It is what the cloud's page says, of which Share leaves a part to others.
type Limit struct {
	Burst     int
	PerSecond float64
}

// Share returns a part of the limit, in percent. Burst is rounded down and is at least one:
// with less no request would ever pass.
func (l Limit) Share(percent int) Limit {
	return Limit{Burst: max(1, l.Burst*percent/100), PerSecond: l.PerSecond * float64(percent) / 100}
}

const (
	// token is one request. In these units a rate of one thousandth of a request per second
	// adds one unit per nanosecond, so that nothing is ever rounded and what passes at which
	// nanosecond is exact.
	token = 1_000_000_000_000

	// leastRate is what is left of a rate at least, however often the cloud throttles: half a
	// request per second, in thousandths.
	leastRate = 500

	// leastPause is how long an action rests after a throttled request at least.
	leastPause = time.Second

	// recovery is how long the cloud has to accept all requests until the rate rises by a step,
	// a tenth of the nominal rate.
	recovery = 10 * time.Second
)

// bucket is the token bucket of one action. Times are since a fixed moment and do not go back.
type bucket struct {
	most    int64 // units that it holds at most
	nominal int64 // units per nanosecond: thousandths of a request per second
	rate    int64 // the same, less after the cloud has throttled
	level   int64 // units at the time at
	at      time.Duration
	closed  time.Duration // until when it gives nothing and gets nothing
	step    time.Duration // when rate rises next; of no meaning where it is nominal
}

func newBucket(l Limit, now time.Duration) *bucket {
	b := &bucket{most: int64(max(1, l.Burst)) * token, nominal: max(1, int64(math.Round(l.PerSecond*1000))), at: now}
	b.level, b.rate = b.most, b.nominal
	return b
}

// advanceTo brings the bucket to a time. The rate changes on the way, so it goes from one change
// to the next.
func (b *bucket) advanceTo(now time.Duration) {
	if b.at < b.closed {
		b.at = min(now, b.closed)
	}
	for b.at < now {
		until := now
		if b.rate < b.nominal && b.step < now {
			until = max(b.step, b.at)
		}
		b.fillFor(until - b.at)
		b.at = until
		if b.rate < b.nominal && b.at >= b.step {
			b.rate = min(b.nominal, b.rate+max(1, b.nominal/10))
			b.step += recovery
		}
	}
}

// fillFor adds what comes in some time at the rate of now. Whatever time would overflow fills it.
func (b *bucket) fillFor(d time.Duration) {
	if d >= time.Duration((b.most-b.level)/b.rate+1) {
		b.level = b.most
		return
	}
	b.level = min(b.most, b.level+b.rate*int64(d))
}

// take takes a token, if there is one.
func (b *bucket) take(now time.Duration) bool {
	b.advanceTo(now)
	if now < b.closed || b.level < token {
		return false
	}
	b.level -= token
	return true
}

// refund puts back a token that was taken for a request that was not sent.
func (b *bucket) refund(now time.Duration) {
	if b.advanceTo(now); now >= b.closed {
		b.level = min(b.most, b.level+token)
	}
}

// nextToken returns when there is a token, which is now if there is one. While the rate recovers it
// may be there sooner: then the time is when the rate rises.
func (b *bucket) nextToken(now time.Duration) time.Duration {
	b.advanceTo(now)
	from := max(now, b.closed)
	if b.level >= token {
		return from
	}
	due := from + time.Duration((token-b.level+b.rate-1)/b.rate)
	if b.rate < b.nominal {
		due = min(due, max(b.step, from+1))
	}
	return due
}

// throttle takes in that the cloud has refused a request because there were too many: others on
// the account take part of what was thought to be free. The bucket is emptied, rests for what
// the cloud asks for, at least a second, and goes on at half the rate.
func (b *bucket) throttle(now, retryAfter time.Duration) {
	b.advanceTo(now)
	// Requests that were sent together are refused together. That is one refusal: else twenty of
	// them would leave nothing of the rate.
	if now >= b.closed {
		b.rate = max(min(leastRate, b.nominal), b.rate/2)
	}
	b.level = 0
	b.closed = max(b.closed, now+max(retryAfter, leastPause))
	b.step = b.closed + recovery
}
