package agent

import "time"

const (
	// FirstWake is how long after the first wake of a quiet time the loop ticks. The watch brings
	// pods that are bound together one by one: what they need is one call then, and the first
	// of them does not order for itself what the others would have had to wait for.
	FirstWake = 10 * time.Millisecond

	// SettleWakes is how long after a tick the next one comes for what woke the loop meanwhile:
	// hundreds of pods that start together cost one tick in that time, and not one each.
	SettleWakes = 100 * time.Millisecond
)

// Loop decides when an agent ticks: almost at once when something wakes it after a quiet time, at
// once when a call ends, and when something is due. It has no clock and no goroutine of its own, so that the
// agent's process and simulations in virtual time run the same one.
type Loop struct {
	now  func() time.Duration
	tick func() time.Duration // returns after how long the next one is due
	set  func(time.Duration)  // sets the only timer: it calls Tick that much later

	ticking bool
	woken   bool          // since the last tick began
	ended   time.Duration // when the last tick did
	due     time.Duration // when the next one is without a wake
}

// NewLoop returns a loop that begins with the first Tick.
func NewLoop(now, tick func() time.Duration, set func(time.Duration)) *Loop {
	return &Loop{now: now, tick: tick, set: set}
}

// Tick ticks now: a call has ended, or the timer has.
func (l *Loop) Tick() {
	l.ticking, l.woken = true, false
	due := l.tick()
	l.ticking, l.ended = false, l.now()
	if l.woken { // by what the tick itself has changed, if nothing else
		due = min(due, SettleWakes)
	}
	l.due = l.ended + due
	l.set(due)
}

// Wake tells that something changed: the node cache, those who wait, or the node's pods.
func (l *Loop) Wake() {
	if !l.ticking && !l.woken {
		now := l.now()
		l.set(min(max(l.ended+SettleWakes-now, FirstWake), l.due-now))
	}
	l.woken = true
}
