package simulate

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/agent"
)

// loop is agent.Agent.Run in virtual time: the same agent.Loop with a timer of the clock. A
// test compares the two.
type loop struct {
	*agent.Loop
	planned int // the newest timer; older ones are void
}

// newLoop returns the loop of a node whose agent has not begun.
func newLoop(n *node) *loop {
	l := &loop{}
	l.Loop = agent.NewLoop(n.sinceBoot, func() time.Duration { return n.agent.Tick(context.Background()) }, func(d time.Duration) {
		l.planned++
		mine := l.planned
		n.clock.at(n.clock.now+d, func() {
			if mine == l.planned {
				l.Tick()
			}
		})
	})
	return l
}
