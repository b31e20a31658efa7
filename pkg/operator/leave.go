package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Finalizer is on each NodeNetwork, set by its agent: the object stays until the operator has seen to the node's ENIs.
const Finalizer = "enipool.io/enis"

// Sweeper is a Region that deletes the ENIs of this cluster that are attached nowhere and whose instance is gone.
type Sweeper interface {
	Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error)
}

// isGoing tells whether somebody deletes the object and it waits for the operator.
func (m *member) isGoing() bool {
	return m.network != nil && m.network.DeletionTimestamp != nil && slices.Contains(m.network.Finalizers, Finalizer)
}

// going is how far an object is whose deletion has begun.
type going struct {
	asking   bool          // whether its instance is alive
	asked    time.Duration // until when it is not asked again
	seenGone bool          // an answer has said that it is gone
}

// sendOff ends an object whose deletion has begun. Of an instance that is alive no ENI is touched: its pods run, and its agent
// makes the object again; but what was accepted in this one ends before, since the next one does not know of it. Of an instance that is
// gone, as two answers a consistency window apart say, a sweep deletes the ENIs.
func (t *term) sendOff(node *member) {
	if t.o.Observe || node.isBusy() || node.asking || t.now().Mono < node.asked || node.wrong != nil {
		return
	}
	node.asking = true
	instance, network, status := node.node.Instance, node.network, node.view.Status
	ended := len(status.Releasing)+len(status.LeavingInterfaces)+len(status.Quarantined) == 0
	seen := node.seenGone
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, shortJob)
		defer cancel()
		state := cloud.Exists // there is no instance that could be gone
		var err error
		if instance != "" {
			var states map[string]cloud.State
			states, err = t.o.Region.Alive(ctx, []string{instance})
			state = states[instance]
		}
		gone := state == cloud.Gone
		if err == nil && state != "" && (!gone && ended || gone && seen) {
			err = t.o.Objects.DropFinalizer(ctx, network)
		}
		t.post(func(t *term) { t.sentOff(node, gone, err) })
	})
}

// sentOff takes in how that has ended.
func (t *term) sentOff(node *member, gone bool, err error) {
	now := t.now().Mono
	node.asking = false
	t.dirty[node.node.Name] = true
	node.asked = now + t.o.Lease.Settle
	switch {
	case errors.Is(err, ErrGone):
		node.network, node.left = nil, true
	case err != nil:
		t.o.Log.Warn("an object whose node is gone stays for now", "node", node.node.Name, "error", err)
	case gone && !node.seenGone:
		node.seenGone = true
	case gone && t.sweepAt == 0: // else it comes sooner: nodes that leave one after the other put it off for ever
		t.sweepAt = now + t.o.LeakAge
	}
}

// sweep deletes what nodes that are gone have left.
func (t *term) sweep() {
	region, can := t.o.Region.(Sweeper)
	if t.sweepAt == 0 || t.now().Mono < t.sweepAt || !can {
		return
	}
	t.sweepAt = 0
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, longJob)
		defer cancel()
		// It deletes what two sweeps have found, so that an ENI that is being made is none of it.
		for round, more := 0, true; more; round++ {
			deleted, err := region.Sweep(ctx, t.o.LeakAge)
			if more = round == 0 || len(deleted) > 0; len(deleted) > 0 {
				t.o.Meter.LeaksDeleted(len(deleted))
				t.o.Log.Info("deleted ENIs that instances had left behind", "enis", deleted)
			}
			if err != nil {
				t.post(func(t *term) {
					t.o.Log.Warn("a sweep failed", "error", err)
					t.sweepAt = t.now().Mono + t.o.LeakAge
				})
				return
			}
			t.o.Clock.Sleep(ctx, nil, t.o.Lease.Settle)
		}
	})
}
