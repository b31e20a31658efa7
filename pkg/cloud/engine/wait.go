package engine

import (
	"context"
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// pauses are the pauses between describes of something that changes.
type pauses struct {
	n     *Node
	pause time.Duration
	until time.Time
}

// pausesFor returns pauses that are over after most.
func (n *Node) pausesFor(most time.Duration) *pauses {
	return &pauses{n: n, pause: n.t.Times.Poll, until: n.clock.Now().Add(most)}
}

// over tells whether it has waited long enough.
func (w *pauses) over() bool { return !w.n.clock.Now().Before(w.until) }

// next pauses, each time a little longer, and tells whether to describe again.
func (w *pauses) next(ctx context.Context) (more bool, ended error) {
	if w.over() {
		return false, nil
	}
	err := w.n.clock.Wait(ctx, w.pause)
	w.pause = min(w.pause*3/2, w.n.t.Times.Slow)
	if err != nil {
		return false, errorf(cloud.ErrUnknown, "given up while waiting: %v", err)
	}
	return true, nil
}

// waitForEarlierProcess waits until describes show all that an earlier process has done to the ENI
// (mayLack): what they do not show then does not exist.
func (n *Node) waitForEarlierProcess(ctx context.Context, id string) error {
	if !n.mayLack(id) {
		return nil
	}
	if err := n.clock.Wait(ctx, n.born.Add(n.t.Times.Settle).Sub(n.clock.Now())); err != nil {
		return errorf(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	return nil
}

// mayPass tells whether a describe that failed may succeed a little later.
func mayPass(err error) bool {
	return err != nil && cloud.MeaningOf(err).Again == cloud.MayPass
}

// repeatThrottled makes a request that is a later step of a method, and repeats it if the cloud
// refuses it for the rate: nothing has happened then, and giving up would leave the method half
// done. The pauses are random, so that nodes that were refused together do not come back together.
func (n *Node) repeatThrottled(ctx context.Context, do func() error) error {
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
