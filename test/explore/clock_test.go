package explore

import (
	"context"
	"iter"
	"time"

	"github.com/enipool/enipool/pkg/timeline"
)

// epoch is the time of day at which each run begins. Nothing depends on it.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is virtual time: it stands still while something happens, and then goes on to
// the next event at once. A call to the cloud is a coroutine that is left while it waits,
// so that everything happens in one goroutine, in the same order in each run.
type clock struct {
	now     time.Duration // since the run began
	events  timeline.Queue[func()]
	current *call // the one that runs now, nil for none
	calls   []*call
}

// at plans an event. A time that has passed is now; of those at the same time the one that was planned first is first.
func (c *clock) at(t time.Duration, do func()) { c.events.Add(max(t, c.now), do) }

// next returns after how long the next event happens.
func (c *clock) next() time.Duration {
	at, _, _ := c.events.First()
	return at - c.now
}

// step lets the next event happen.
func (c *clock) step() {
	at, do, _ := c.events.First()
	c.events.DropFirst()
	c.now = at
	do()
}

// call is a call of the agent to its cloud.
type call struct {
	limit time.Duration              // when it is broken off
	heard uint64                     // digest of what it asked for and was answered so far
	makes bool                       // it is a CreateInterface
	final bool                       // the last thing that it asked for was refused for good
	yield func(d time.Duration) bool // leaves it for d
	next  func() (time.Duration, bool)
	stop  func()
}

// begin runs a call for at most limit, beside everything else, and ended after it.
func (c *clock) begin(limit time.Duration, run, ended func()) {
	p := &call{limit: c.now + limit}
	p.next, p.stop = iter.Pull(func(yield func(time.Duration) bool) {
		p.yield = yield
		run()
	})
	c.calls = append(c.calls, p)
	c.at(c.now, func() { c.resume(p, ended) })
}

// resume runs a call until it waits again, or ends. It panics as the call does.
func (c *clock) resume(p *call, ended func()) {
	if !c.has(p) {
		return // it was broken off
	}
	c.current = p
	defer func() { c.current = nil }()
	d, more := p.next()
	if more {
		c.at(c.now+d, func() { c.resume(p, ended) })
		return
	}
	c.drop(p)
	c.current = nil
	ended()
}

func (c *clock) has(p *call) bool {
	for _, other := range c.calls {
		if other == p {
			return true
		}
	}
	return false
}

func (c *clock) drop(p *call) {
	for i, other := range c.calls {
		if other == p {
			c.calls = append(c.calls[:i:i], c.calls[i+1:]...)
		}
	}
}

// breakOff ends all calls where they are: none of them has any more effect.
func (c *clock) breakOff() {
	calls := c.calls
	c.calls = nil
	for _, p := range calls {
		func() {
			defer func() { _ = recover() }() // Wait's panic, which unwinds the call
			p.stop()
		}()
	}
}

// Now is the time of day, for the account, the engine and the agent.
func (c *clock) Now() time.Time { return epoch.Add(c.now) }

// Wait lets d pass for the call that runs now.
func (c *clock) Wait(_ context.Context, d time.Duration) error {
	p, left := c.current, c.current.limit-c.now
	if !p.yield(min(d, left)) {
		panic(killed{})
	}
	if d > left {
		return context.DeadlineExceeded
	}
	return nil
}
