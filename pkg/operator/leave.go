package operator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/order"
)

// Finalizer is on each NodeNetwork, set by its agent: the object stays until the operator has seen to the node's ENIs.
const Finalizer = "enipool.io/enis"

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
	network, now := node.network, t.now()
	instance := cmp.Or(node.node.Instance, network.Status.Instance)
	ended, seen := node.hasEnded(now), node.seenGone
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, shortJob)
		defer cancel()
		state := cloud.Exists
		if instance == "" {
			ended = true // nobody has ever called for the node
		}
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

// hasEnded tells whether no call about the node can have an effect any more: nothing that was accepted is open, and of what a late call may
// take the time is over. No describe need show that: the next object knows of nothing.
func (m *member) hasEnded(now order.Moment) bool {
	s := m.view.Status
	return len(s.Releasing)+len(s.LeavingInterfaces) == 0 && !slices.ContainsFunc(s.Quarantined, func(q order.Quarantined) bool { return m.term.QuarantineEnds(q, now) > now.Mono })
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
		t.o.Log.Warn("an object that is deleted stays for now; it is tried again", "node", node.node.Name, "error", err)
	case gone && !node.seenGone:
		node.seenGone = true
	case gone:
		t.sweeps.ask(now + t.o.LeakAge)
	}
}
