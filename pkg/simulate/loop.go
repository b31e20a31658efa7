package simulate

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/agent"
)

// loop is agent.Agent.Run in virtual time: it ticks when the node cache changed and
// has come to rest, when a call has ended, and when something is due. A test
// compares the two.
type loop struct {
	node      *node
	ticking   bool
	woken     bool // while it ticked
	gathering bool
	most      time.Duration // when gathering ends at the latest
	planned   int           // the newest timer; older ones are void
}

// start lets the agent begin now.
func (l *loop) start() { l.tick() }

func (l *loop) tick() {
	l.ticking, l.woken, l.gathering = true, false, false
	due := l.node.agent.Tick(context.Background())
	l.ticking = false
	if l.woken {
		l.wake()
		return
	}
	l.timer(due)
}

// timer plans the next tick in place of the one that was planned.
func (l *loop) timer(d time.Duration) {
	l.planned++
	mine, c := l.planned, l.node.clock
	c.at(c.now+d, func() {
		if mine == l.planned {
			l.tick()
		}
	})
}

// wake tells that the node cache or those who wait have changed.
func (l *loop) wake() {
	now := l.node.clock.now
	if l.ticking {
		l.woken = true
		return
	}
	if !l.gathering {
		l.gathering, l.most = true, now+agent.MostWakes
	}
	l.timer(min(agent.SettleWakes, l.most-now))
}

// answered tells that a call has ended. One that ends while wakes are gathered is
// taken in with them.
func (l *loop) answered() {
	if !l.gathering {
		l.tick()
	}
}
