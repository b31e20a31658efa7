package agent

import (
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// tellWorks logs that a call works that failed before, once: the log has told each failure, and who
// reads it would else take the last one for how things are. It comes before the failures are cleared.
func (a *Agent) tellWorks(r result, now time.Duration) {
	since, unreached := now, false
	for _, s := range []scope{of(classOf(r.op)), r.scope(), r.blamed()} {
		if v, failed := a.backoffs[s]; failed && !v.told && v.concerns(r.key) {
			since, unreached = min(since, v.since), unreached || errors.Is(v.err, cloud.ErrUnavailable)
		}
	}
	if since == now {
		return
	}
	if unreached {
		since = min(since, a.backoffs.reached(now))
	}
	a.Log.Info("cloud call works again", "call", r.call.String(), "failed for", (now - since).Round(time.Second))
}

// concerns tells whether it is news of a failure that a call about the object works.
func (v backoff) concerns(o object) bool {
	switch {
	case v.by.kind != everything && v.by != o && v.times == 1: // only another object failed, and may fail still
		return false
	case errors.Is(v.err, cloud.ErrThrottled) && v.times == 1: // that is how calls are paced
		return false
	}
	return true
}

// reached notes of all that was not reached that it is, and returns since when the first of it was not:
// a cloud that answers one call answers the others, and what it does not answer is told again.
func (b backoffs) reached(now time.Duration) (since time.Duration) {
	since = now
	for s, v := range b {
		if errors.Is(v.err, cloud.ErrUnavailable) && !v.told {
			since, v.told = min(since, v.since), true
			b[s] = v
		}
	}
	return since
}
