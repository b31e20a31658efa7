package operator

import (
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
	refused  int           // times in a row that this failed
	seenGone bool          // the last answer has said that it is gone
	unread   time.Duration // since when it is to end and can't be read, 0 if it can
	former   string        // the instance that the object was served for, if the Node has another one since and nothing of that one went back
}

// sendOff ends an object whose deletion has begun. Of an instance that is alive no ENI is touched: its pods run, and its agent
// makes the object again; but what was accepted in this one ends before, since the next one does not know of it. Of an instance that is
// gone, as two answers a consistency window apart say, a sweep deletes the ENIs. Where the Node has another instance already it is about the one before.
func (t *term) sendOff(node *member) {
	now := t.now()
	if t.o.Observe || node.isBusy() || node.asking || now.Mono < node.asked {
		return
	}
	if node.wrong == nil {
		node.unread = 0
	} else if node.unread == 0 {
		node.unread = max(now.Mono, 1)
	}
	node.asking = true
	network, instance := node.network, node.servedInstance()
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
		t.post(func(t *term) { t.sentOff(node, state, err) })
	})
}

// servedInstance returns the instance that what is open in the object is about, "" if nobody has ever called for the node.
func (m *member) servedInstance() string {
	switch {
	case m.former != "":
		return m.former
	case m.node.Instance != "":
		return m.node.Instance
	}
	return m.network.Status.Instance
}

// hasEnded tells whether no call about the node can have an effect any more: nothing that was accepted is open, and of what a late call may
// take the time is over. No describe need show that: the next object knows of nothing. Of an object that can't be read nobody knows what was
// accepted; but nothing is called for it either.
func (m *member) hasEnded(now order.Moment) bool {
	if m.wrong != nil {
		return m.unread > 0 && now.Mono >= m.unread+m.term.Lease.Fence
	}
	s := m.view.Status
	open := len(s.Releasing)+len(s.LeavingInterfaces) > 0
	// Of a node that has left nobody may ever read of this leader. After a store was put back that says nothing.
	over := m.term.IsSilent(m.view.Spec, now) && m.putBack == 0 && m.before == nil && !m.isBusy()
	return (!open || over) && !slices.ContainsFunc(s.Quarantined, func(q order.Quarantined) bool { return m.term.QuarantineEnds(q, now) > now.Mono })
}

// sentOff takes in how that has ended.
func (t *term) sentOff(node *member, state cloud.State, err error) {
	now := t.now().Mono
	node.asking = false
	t.dirty[node.node.Name] = true
	node.asked = now + t.o.Lease.Settle
	switch {
	case errors.Is(err, ErrGone):
		node.network, node.left = nil, true
		return
	case err != nil:
		// What is refused is refused the next time too, as a rule. That somebody has changed the object is no refusal.
		if node.asked = now + min(lastPause, t.o.Lease.Settle<<min(node.refused, 10)); !errors.Is(err, ErrConflict) {
			node.refused++
		}
		t.o.Log.Warn("an object that is deleted stays for now; it is tried again", "node", node.node.Name, "again in", node.asked-now, "error", err)
		return
	}
	node.refused = 0
	if state == cloud.Gone && node.seenGone {
		t.sweeps.ask(now + t.o.LeakAge)
	}
	// An answer may be wrong: one that says otherwise takes it back.
	if state != "" {
		node.seenGone = state == cloud.Gone
	}
}
