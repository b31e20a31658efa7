package simulate

import (
	"container/heap"
	"context"
	"iter"
	"time"
)

// epoch is the time of day at which loads begin. Nothing depends on it.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is virtual time: it stands still while something happens and then jumps to the next
// event. Calls to the cloud take time without a goroutine that sleeps: each is a coroutine
// that is suspended while it waits. So everything happens in one goroutine and in an order
// that is always the same.
type clock struct {
	now    time.Duration // since the load began, less than 0 before
	events events
	serial int
	call   *call   // the one that runs now
	calls  []*call // all coroutines
	idle   []*call // those whose call has ended
}

// event is something that happens at a time; of those at the same time the one that
// was planned first.
type event struct {
	at     time.Duration
	serial int
	do     func()
}

// planAt plans an event. A time that has passed is now.
func (c *clock) planAt(t time.Duration, do func()) {
	c.serial++
	heap.Push(&c.events, event{max(t, c.now), c.serial, do})
}

// runNext lets the next event happen, if there is one before end.
func (c *clock) runNext(end time.Duration) bool {
	if len(c.events) == 0 || c.events[0].at >= end {
		return false
	}
	e := heap.Pop(&c.events).(event)
	c.now = e.at
	e.do()
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

// events is a heap.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	return e[i].at < e[k].at || e[i].at == e[k].at && e[i].serial < e[k].serial
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}
