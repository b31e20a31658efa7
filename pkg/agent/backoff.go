package agent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/pool"
)

// backoff is something left alone until a time, because it failed.
type backoff struct {
	until time.Duration
	since time.Duration // of the first in a row
	times int           // failures in a row
	by    object        // what the last of them was about, where the class is left alone for an object's sake
	err   error         // the last of them
	told  bool          // people know that it works again
}

// backoffs are kept by what they are about.
type backoffs map[scope]backoff

// delay is how long to leave something alone at most after its first failure, and ever.
type delay struct{ first, most time.Duration }

// leastDelay is how long it is at least. Full jitter may draw next to nothing, again and again:
// without a floor that would be a loop that does nothing but call.
const leastDelay = 250 * time.Millisecond

// failure is one of something: how long it is left alone for, what for, and what the other side
// asked for at least.
type failure struct {
	delay
	by      object
	atLeast time.Duration
	err     error
}

// fail notes one more failure. The most that it is left alone for doubles each time, and how
// long it is, is drawn from all of that (full jitter): nodes that failed together spread over
// the whole time, and don't come back together. Calls that were under way together fail
// together: that is one failure.
func (b backoffs) fail(s scope, f failure, now time.Duration, r *rand.Rand) {
	was, failed := b[s]
	if !failed {
		was.since = now
	}
	if was.until > now {
		was.until, was.by, was.err, was.told = max(was.until, now+f.atLeast), f.by, f.err, false
		b[s] = was
		return
	}
	times := was.times
	if s.kind == everything && f.by.kind != everything && f.by == was.by {
		times-- // one object that fails again and again is no news of the others
	}
	most := f.first << min(times, 16)
	if most <= 0 || most > f.most {
		most = f.most
	}
	wait := leastDelay
	if f.atLeast > wait { // else all of whom the cloud asked to wait would be back at once
		wait, most = f.atLeast, f.atLeast+most
	}
	wait += time.Duration(r.Float64() * float64(max(0, most-wait)))
	b[s] = backoff{until: now + wait, since: was.since, times: times + 1, by: f.by, err: f.err}
}

// why says what the last failure was and what a person can do about it, "" if there
// was none.
func (v backoff) why() string {
	if v.err == nil {
		return ""
	}
	return strings.ReplaceAll(v.err.Error(), "\n", "; ") + hint(v.err)
}

// active tells whether it is to be left alone at now.
func (b backoffs) active(s scope, now time.Duration) bool { return b[s].until > now }

// refusalCause says why it is to be left alone at now, no cause if it may be tried.
func (b backoffs) refusalCause(s scope, now time.Duration) pool.Cause {
	if !b.active(s, now) {
		return pool.Cause{}
	}
	return b.because(s)
}

// mayRetry tells whether it failed and may be tried again by now.
func (b backoffs) mayRetry(s scope, now time.Duration) bool {
	v, failed := b[s]
	return failed && v.until <= now
}

// clear forgets failures: it works again.
func (b backoffs) clear(s scope) { delete(b, s) }

// next returns when the first of them ends, 0 if none is active.
func (b backoffs) next(now time.Duration) time.Duration {
	var first time.Duration
	for _, v := range b {
		if v.until > now && (first == 0 || v.until < first) {
			first = v.until
		}
	}
	return first
}

// lastOf returns until when one of the scopes is left alone.
func (b backoffs) lastOf(scopes ...scope) (until time.Duration) {
	for _, s := range scopes {
		until = max(until, b[s].until)
	}
	return until
}

// scopes returns what failed last, in order.
func (b backoffs) scopes() []scope { return slices.SortedFunc(maps.Keys(b), compareScopes) }

// lines tells people what is left alone, for how long and why.
func (b backoffs) lines(now time.Duration) []string {
	var list []string
	for _, s := range b.scopes() {
		if v := b[s]; v.until > now {
			list = append(list, fmt.Sprintf("%s for %s: %s", s, (v.until-now).Round(time.Second), v.why()))
		}
	}
	return list
}
