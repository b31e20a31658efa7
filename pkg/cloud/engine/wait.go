package engine

import (
	"context"
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// waiter is the pauses between looks at something that changes.
type waiter struct {
	n     *Node
	pause time.Duration
	until time.Time
}

// wait begins to wait for at most so long.
func (n *Node) wait(most time.Duration) *waiter {
	return &waiter{n: n, pause: n.t.Times.Poll, until: n.clock.Now().Add(most)}
}

// over tells whether it has waited long enough.
func (w *waiter) over() bool { return !w.n.clock.Now().Before(w.until) }

// next pauses, each time a little longer, and tells whether to look again.
func (w *waiter) next(ctx context.Context) (more bool, ended error) {
	if w.over() {
		return false, nil
	}
	err := w.n.clock.Wait(ctx, w.pause)
	w.pause = min(w.pause*3/2, w.n.t.Times.Slow)
	if err != nil {
		return false, because(cloud.ErrUnknown, "given up while waiting: %v", err)
	}
	return true, nil
}

// grow waits until mayLack ends: what a describe does not show then does not exist.
func (n *Node) grow(ctx context.Context, id string) error {
	if !n.mayLack(id) {
		return nil
	}
	if err := n.clock.Wait(ctx, n.born.Add(n.t.Times.Settle).Sub(n.clock.Now())); err != nil {
		return because(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	return nil
}

// passes tells whether an error of a look is worth another look.
func passes(err error) bool {
	return errors.Is(err, cloud.ErrThrottled) || errors.Is(err, cloud.ErrUnavailable)
}

// insist makes a change that is a later step of a method, and makes it again where the
// cloud has too many: nothing has happened then, and to give up would leave things half
// done. Nodes that were refused together do not come back together.
func (n *Node) insist(ctx context.Context, do func() error) error {
	until := n.clock.Now().Add(n.t.Times.Wait)
	for most := 2 * n.t.Times.Poll; ; most = min(2*most, 2*n.t.Times.Slow) {
		err := do()
		if !errors.Is(err, cloud.ErrThrottled) || n.clock.Now().After(until) {
			return err
		}
		if n.clock.Wait(ctx, most/2+n.o.Random(most/2)) != nil {
			return err
		}
	}
}
