package agent

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// Clock is how time passes for an agent, and tells it what happens meanwhile. There are two: RealClock is a
// process's, VirtualClock a simulation's.
type Clock interface {
	Now() time.Duration // since boot
	Wall() time.Time    // the time of day

	// Beside runs a call to the cloud beside the agent, for limit at most. Next tells when it has ended.
	Beside(ctx context.Context, limit time.Duration, call func(context.Context))

	// Next waits until something happens, and not beyond a time, which is Due.
	Next(ctx context.Context, until time.Duration) Event
}

// Event is what has happened. What it means for the agent only turns.handle knows.
type Event struct {
	Kind
	Conf *agentconf.Config // of Reloaded
}

// Kind says what has happened.
type Kind uint8

const (
	Due       Kind = iota // nothing, and the time has come
	Woken                 // the node cache, the waiting ADDs or the node's pods changed
	Occupied              // others changed what they hold of the pool's addresses
	Disturbed             // others changed the kernel so that it should be compared with the node cache
	Reloaded              // there is a new configuration
	CallEnded             // a call that runs beside the agent has ended
	Stopped               // the agent is to end
)

// RealClock is the clock of a process: time passes by itself, and channels tell what happens.
type RealClock struct {
	Signals // may be set until the agent runs

	now   func() time.Duration
	ended chan struct{}
}

// Signals tell a process what happens. Each of them may be nil.
type Signals struct {
	Wake      <-chan struct{} // Woken
	Occupied  <-chan struct{}
	Disturbed <-chan struct{}
	Reload    <-chan agentconf.Config // Reloaded
}

// NewRealClock returns the clock of one agent. now returns the time since boot.
func NewRealClock(now func() time.Duration, s Signals) *RealClock {
	return &RealClock{Signals: s, now: now, ended: make(chan struct{}, 1)}
}

// Now returns the time since boot.
func (c *RealClock) Now() time.Duration { return c.now() }

// Wall returns the time of day.
func (c *RealClock) Wall() time.Time { return time.Now() }

// Beside runs a call in a goroutine. A call outlives the tick, and a stop waits for
// it: breaking it off would leave its outcome unknown.
func (c *RealClock) Beside(ctx context.Context, limit time.Duration, call func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	go func() {
		defer cancel()
		call(ctx)
		select {
		case c.ended <- struct{}{}:
		default: // the agent has yet to hear of another call: it takes the results of both
		}
	}()
}

// Next waits for the channels, and for ctx, whose end is Stopped.
func (c *RealClock) Next(ctx context.Context, until time.Duration) Event {
	timer := time.NewTimer(until - c.now())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Event{Kind: Stopped}
	case <-c.Wake:
		return Event{Kind: Woken}
	case <-c.Occupied:
		return Event{Kind: Occupied}
	case <-c.Disturbed:
		return Event{Kind: Disturbed}
	case conf := <-c.Reload:
		return Event{Kind: Reloaded, Conf: &conf}
	case <-c.ended:
		return Event{Kind: CallEnded}
	case <-timer.C:
		return Event{Kind: Due}
	}
}
