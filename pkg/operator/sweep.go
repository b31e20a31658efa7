package operator

import (
	"cmp"
	"context"
	"time"
)

// Sweeper is a Region that deletes the ENIs of this cluster that are attached nowhere and whose instance is gone.
type Sweeper interface {
	// Sweep deletes those of which two sweeps have found that, a part of them each time. more: there are others that it has
	// not asked about twice yet. Between the two there has to be a consistency window.
	Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, more bool, err error)
}

// sweeps is when the leaked ENIs of a cluster are looked for: when a term begins, since the leader before may have been about to, once more when
// all that one left is old enough, each day, and when nodes are gone.
type sweeps struct {
	under  bool
	at     time.Duration // the next one that nobody has asked for
	first  time.Duration // the next one that was asked for, 0 for none
	latest time.Duration // the last one that was: what made it necessary the first one may be too early for
}

// firstSweep is when a term has its sweep: when nodes that wait have had their first addresses. Daily is how often others come.
const (
	firstSweep = time.Minute
	daily      = 24 * time.Hour
)

// ask asks for a sweep at a time.
func (s *sweeps) ask(at time.Duration) {
	if s.latest = at; s.first == 0 { // else nodes that leave one after the other would put it off for ever
		s.first = at
	}
}

// due returns when the next one begins.
func (s *sweeps) due() time.Duration {
	if s.first > 0 {
		return min(s.at, s.first)
	}
	return s.at
}

// begin takes in that one begins.
func (s *sweeps) begin(now time.Duration) {
	if s.under = true; s.first > now {
		return
	}
	if s.first = s.latest; s.latest <= now {
		s.first, s.latest = 0, 0
	}
}

// sweep deletes what nodes that are gone have left, in rounds, until all instances of such ENIs have been asked about twice. It returns how long
// until the next one.
func (t *term) sweep(now time.Duration) time.Duration {
	region, can := t.o.Region.(Sweeper)
	if t.sweeps.under || !can || t.o.Observe {
		return patience
	}
	if due := t.sweeps.due(); due > now {
		return due - now
	}
	t.sweeps.begin(now)
	t.under.Go(func() {
		err := t.sweepAll(region)
		t.post(func(t *term) {
			t.sweeps.under, t.sweeps.at = false, t.now().Mono+daily
			if err != nil {
				t.o.Log.Warn("a sweep failed; it goes on later", "error", err)
				t.sweeps.at = t.now().Mono + t.o.LeakAge
			}
		})
	})
	return patience
}

// mostFailures is after how many rounds in a row that failed a sweep goes on later.
const mostFailures = 3

// sweepAll sweeps round by round. An ENI that can't be deleted keeps no other one.
func (t *term) sweepAll(region Sweeper) (failed error) {
	failures := 0
	for more := true; more && failures < mostFailures && t.ctx.Err() == nil; {
		ctx, cancel := context.WithTimeout(t.ctx, longJob)
		deleted, left, err := region.Sweep(ctx, t.o.LeakAge)
		cancel()
		if len(deleted) > 0 {
			t.o.Meter.LeaksDeleted(len(deleted))
			t.o.Log.Info("ENIs of instances that are gone were deleted", "enis", deleted)
		}
		if failures++; err == nil {
			failures = 0
		}
		failed = cmp.Or(failed, err)
		if more = left || err != nil; more {
			t.o.Clock.Sleep(t.ctx, nil, t.o.Lease.Settle)
		}
	}
	return failed
}
