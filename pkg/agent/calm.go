package agent

import (
	"context"
	"time"
)

const (
	// fastestCalm is the shortest resync that a calm node stretches: who wants comparisons more
	// often than by default gets them.
	fastestCalm = time.Minute

	// calmest is how often the time to the next comparison doubles at most: a minute becomes
	// four.
	calmest = 2
)

// Listener is a Kernel that hears nearly all that others change in it, so that a periodic
// comparison finds next to nothing.
type Listener interface {
	Hears(ctx context.Context) bool
}

// putOffResync puts off the next periodic comparison of a calm node: one that found nothing to put right,
// and no sandbox that died, on a node where nothing else happened since the one before.
func (a *Agent) putOffResync(ctx context.Context, now time.Duration) {
	kernel, can := a.Kernel.(Listener)
	if !can || a.conf.Resync < fastestCalm || len(a.doubts.dead) > 0 || len(a.status.Blocked)+len(a.status.PortConflicts)+len(a.status.Misrouted) > 0 || !kernel.Hears(ctx) {
		a.calm = 0
		return
	}
	a.calm = min(a.calm+1, calmest)
	a.resyncAt = now + a.resyncPeriod()
}

// resyncPeriod is how far periodic comparisons are apart now.
func (a *Agent) resyncPeriod() time.Duration { return a.conf.Resync << max(a.calm, 0) }

// endCalm ends the calm: the next comparison, and the one after it, come as soon as usual.
func (a *Agent) endCalm(now time.Duration) {
	if _, can := a.Kernel.(Listener); !can {
		return
	}
	if a.calm > 0 {
		a.resyncAt, a.othersAt = min(a.resyncAt, now+a.conf.Resync), min(a.othersAt, now+a.conf.Resync)
	}
	a.calm = -1
}
