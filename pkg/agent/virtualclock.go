package agent

import (
	"context"
	"iter"
	"slices"
	"time"
)

// VirtualTime is what passes in a simulation: a line of events that happen one after the other, in one
// goroutine.
type VirtualTime struct {
	Now  func() time.Duration // since boot
	Wall func() time.Time

	// After plans an event.
	After func(d time.Duration, do func())
	// Begin runs a call for limit at most, beside everything else, and then ended.
	Begin func(limit time.Duration, run, ended func())
}

// VirtualClock is the clock of an agent in a simulation. The agent's Run is a coroutine that is left while it
// waits for what happens next.
type VirtualClock struct {
	time    VirtualTime
	heard   []Event // while the agent was busy
	busy    bool    // the agent does something, in which events happen too
	ended   bool
	planned int           // timers so far; all but the newest are void
	dueAt   time.Duration // the newest, 0 for none

	leave  func(struct{}) bool // leaves the coroutine, false if it is to end
	resume func() (struct{}, bool)
	stop   func()
}

// NewVirtualClock returns the clock of one agent.
func NewVirtualClock(t VirtualTime) *VirtualClock { return &VirtualClock{time: t} }

// Start runs the agent until it waits. It panics where the agent does, as Tell and the timer do.
func (c *VirtualClock) Start(a *Agent) {
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if c.ended {
				_ = recover() // the panic of Next
			}
		}()
		c.leave = yield
		_ = a.Run(context.Background())
	})
	c.resumeAgent()
}

// Tell tells a running agent what has happened. If it is busy it hears of that when it is not any more.
func (c *VirtualClock) Tell(e Event) {
	if c.resume == nil || c.ended {
		return
	}
	c.heard = append(c.heard, e)
	if !c.busy {
		c.resumeAgent()
	}
}

// IsBusy tells whether the agent does something now.
func (c *VirtualClock) IsBusy() bool { return c.busy }

// Stop ends the agent where it waits, as a kill does: it does nothing any more.
func (c *VirtualClock) Stop() {
	c.ended = true
	if c.stop != nil {
		c.stop()
	}
}

func (c *VirtualClock) resumeAgent() {
	c.busy = true
	defer func() { c.busy = false }()
	c.resume()
}

// Now returns the time since boot.
func (c *VirtualClock) Now() time.Duration { return c.time.Now() }

// Wall returns the time of day.
func (c *VirtualClock) Wall() time.Time { return c.time.Wall() }

// Beside lets the simulation run a call.
func (c *VirtualClock) Beside(ctx context.Context, limit time.Duration, call func(context.Context)) {
	c.time.Begin(limit, func() { call(ctx) }, func() { c.Tell(Event{Kind: CallEnded}) })
}

// Next leaves the agent until something happens.
func (c *VirtualClock) Next(_ context.Context, until time.Duration) Event {
	if len(c.heard) == 0 {
		c.plan(until)
		if !c.leave(struct{}{}) {
			panic("the simulation has ended") // which unwinds the agent: to return would let it do more
		}
	}
	e := c.heard[0]
	c.heard = slices.Delete(c.heard, 0, 1)
	return e
}

// plan sets the timer, unless it is set for that time.
func (c *VirtualClock) plan(until time.Duration) {
	if c.dueAt == until {
		return
	}
	c.planned++
	mine := c.planned
	c.dueAt = until
	c.time.After(until-c.Now(), func() {
		if mine == c.planned {
			c.dueAt = 0
			c.Tell(Event{Kind: Due})
		}
	})
}
