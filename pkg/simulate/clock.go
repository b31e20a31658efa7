package simulate

import (
	"context"
	"iter"
	"time"

	"github.com/enipool/enipool/pkg/timeline"
)

// epoch is the time of day at which loads begin. Nothing depends on it.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is virtual time: it stands still while something happens and then jumps to the next
// event. Calls to the cloud take time without a goroutine that sleeps: each is a coroutine
// that is suspended while it waits. So everything happens in one goroutine and in an order
// that is always the same.
type clock struct {
	now    time.Duration // since the load began, less than 0 before
	events timeline.Queue[func()]
	call   *call   // the one that runs now
	calls  []*call // all coroutines
	idle   []*call // those whose call has ended
}

// planAt plans an event. A time that has passed is now; of those at the same time the one that was planned first is first.
func (c *clock) planAt(t time.Duration, do func()) { c.events.Add(max(t, c.now), do) }

// runNext lets the next event happen, if there is one before end.
func (c *clock) runNext(end time.Duration) bool {
	at, do, is := c.events.First()
	if !is || at >= end {
		return false
	}
	c.events.DropFirst()
	c.now = at
	do()
	return true
}

// call is a coroutine with the call to the cloud that it carries out. It is reused for other
// calls, because making one costs more than most calls.
type call struct {
	run   func()
	ended func()
	limit time.Duration              // when the call is broken off
	yield func(d time.Duration) bool // suspends it for d; false: the play has ended meanwhile
	next  func() (time.Duration, bool)
	stop  func()
}

// over is what a coroutine yields when its call has ended.
const over time.Duration = -1

// beginCall runs a call for at most limit, beside everything else. ended is called after
// it.
func (c *clock) beginCall(limit time.Duration, run, ended func()) {
	var p *call
	if last := len(c.idle) - 1; last >= 0 {
		p, c.idle = c.idle[last], c.idle[:last]
	} else {
		p = newCall()
		c.calls = append(c.calls, p)
	}
	p.limit, p.run, p.ended = c.now+limit, run, ended
	c.planAt(c.now, func() { c.goOn(p) })
}

func newCall() *call {
	p := &call{}
	p.next, p.stop = iter.Pull(func(yield func(time.Duration) bool) {
		p.yield = yield
		for p.run(); yield(over); {
			p.run()
		}
	})
	return p
}

// goOn runs a call until it waits again, or ends.
func (c *clock) goOn(p *call) {
	c.call = p
	d, _ := p.next()
	c.call = nil
	if d != over {
		c.planAt(c.now+d, func() { c.goOn(p) })
		return
	}
	c.idle = append(c.idle, p)
	p.ended()
}

// stopCalls breaks off all calls under way. Each goes on until it returns, and its waits fail:
// the engine may have to clean up.
func (c *clock) stopCalls() {
	for _, p := range c.calls {
		c.call = p
		p.stop()
	}
	c.call = nil
}

// Now and Wait are the clock as the account sees it.
func (c *clock) Now() time.Time { return epoch.Add(c.now) }

func (c *clock) Wait(_ context.Context, d time.Duration) error {
	p := c.call
	if left := p.limit - c.now; d > left {
		p.yield(left)
		return context.DeadlineExceeded
	}
	if !p.yield(d) {
		return context.Canceled
	}
	return nil
}
