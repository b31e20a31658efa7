package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// hold is something left alone until a time, because it failed.
type hold struct {
	until time.Duration
	times int   // failures in a row
	err   error // the last of them
}

// holds are kept by what they are about: "cloud", "create", "eni ID", "assign ID", "subnet ID".
type holds map[string]hold

// delay is how long to leave something alone after its first failure, and at most.
type delay struct{ first, most time.Duration }

// fail notes one more failure: the delay doubles each time, with a fifth of jitter
// either way so that nodes which failed together do not come back together. at
// least is what the other side asked for. Calls that were under way together fail
// together: that is one failure.
func (h holds) fail(key string, d delay, atLeast, now time.Duration, r *rand.Rand) {
	was := h[key]
	if was.until > now {
		was.until = max(was.until, now+atLeast)
		h[key] = was
		return
	}
	wait := d.first << min(was.times, 16)
	if wait <= 0 || wait > d.most {
		wait = d.most
	}
	wait = max(wait, atLeast)
	wait += time.Duration((r.Float64() - 0.5) * 0.4 * float64(wait))
	h[key] = hold{until: now + wait, times: was.times + 1, err: was.err}
}

// because notes what the failure was.
func (h holds) because(key string, err error) {
	was := h[key]
	was.err = err
	h[key] = was
}

// why says what the last failure was and what a person can do about it, "" if there
// was none.
func (v hold) why() string {
	if v.err == nil {
		return ""
	}
	return v.err.Error() + hint(v.err)
}

// active tells whether it is to be left alone at now.
func (h holds) active(key string, now time.Duration) bool { return h[key].until > now }

// refused tells whether it is to be left alone at now, and what the failure was.
func (h holds) refused(key string, now time.Duration) (why string, is bool) {
	v := h[key]
	if v.until <= now {
		return "", false
	}
	if v.err != nil {
		why = v.err.Error()
	}
	return why, true
}

// over tells whether it failed and may be tried again by now.
func (h holds) over(key string, now time.Duration) bool {
	v, failed := h[key]
	return failed && v.until <= now
}

// clear forgets failures: it works again.
func (h holds) clear(key string) { delete(h, key) }

// next returns when the first of them ends, 0 if none is active.
func (h holds) next(now time.Duration) time.Duration {
	var first time.Duration
	for _, v := range h {
		if v.until > now && (first == 0 || v.until < first) {
			first = v.until
		}
	}
	return first
}

// lines tells people what is left alone, for how long and why.
func (h holds) lines(now time.Duration) []string {
	var list []string
	for key, v := range h {
		if v.until > now {
			list = append(list, fmt.Sprintf("%s for %s: %s", key, (v.until-now).Round(time.Second), v.why()))
		}
	}
	slices.Sort(list)
	return list
}
