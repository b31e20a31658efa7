package agent

import (
	"context"
	"math"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

const (
	// FirstWake is how long after the first wake of a quiet time the agent ticks. The watch brings
	// pods that are bound together one by one: what they need is one call then, and the first
	// of them does not order for itself what the others would have had to wait for.
	FirstWake = 10 * time.Millisecond

	// SettleWakes is how long after a tick the next one comes for what woke the agent meanwhile:
	// hundreds of pods that start together cost one tick in that time, and not one each.
	SettleWakes = 100 * time.Millisecond
)

// turns decides when a running agent ticks and gives its signs of life.
type turns struct {
	*Agent
	ended  time.Duration // when the last tick did
	tickAt time.Duration // when the next one is due
	beatAt time.Duration // when the next sign of life is
}

// newTurns begins with a tick that is due.
func newTurns(a *Agent) *turns {
	t := &turns{Agent: a, beatAt: math.MaxInt64}
	if a.Beat != nil {
		t.beatAt = a.Now() + status.UntilBeat(a.Now())
	}
	return t
}

// handle does what an event asks for. It is the only place that knows what each of them means.
func (t *turns) handle(ctx context.Context, e Event) {
	now := t.Now()
	if now >= t.beatAt {
		t.Beat()
		t.beatAt = now + status.UntilBeat(now)
	}
	switch e.Kind {
	case Woken:
		t.tickSoon(now)
	case Occupied:
		t.occupied = true
		t.tickSoon(now)
	case Disturbed: // pods without traffic don't wait for the end of a burst
		t.disturbed = true
		t.tickNow(ctx)
	case Reloaded:
		t.Log.Info("configuration reloaded")
		t.Reload(*e.Conf)
		t.tickNow(ctx)
	case CallEnded:
		if len(t.done) > 0 { // else an earlier tick has taken the result
			t.tickNow(ctx)
		}
	case Due: // the tick, or only a sign of life
		if now >= t.tickAt {
			t.tickNow(ctx)
		}
	}
}

// waitUntil is when the agent wants to be told that nothing happened.
func (t *turns) waitUntil() time.Duration { return min(t.tickAt, t.beatAt) }

// tickSoon has a tick come for a wake. Further wakes don't put it off.
func (t *turns) tickSoon(now time.Duration) {
	t.tickAt = min(t.tickAt, max(t.ended+SettleWakes, now+FirstWake))
}

// tickNow ticks. A tick is not broken off: what it does belongs together.
func (t *turns) tickNow(ctx context.Context) {
	after := t.Tick(context.WithoutCancel(ctx))
	t.ended = t.Now()
	t.tickAt = t.ended + after
}
