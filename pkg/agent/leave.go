package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// leave is how far a node is that an operator called the cloud for, and whose agent is to call it again.
type leave struct {
	calls    bool          // the node's object was read, and by it the agent calls the cloud
	leftAt   time.Duration // since when the status says so, 0 for not yet
	outdated string        // the version that the last write was too old for, "" for none
	unheard  bool          // the API server does not keep whose status the agent has read
}

// lookIfDue describes, once no operator calls the cloud for the node. With each describe the node's object is read again: it may have been
// put back from a backup of when an operator called, and nobody else tells the agent.
func (s self) lookIfDue(ctx context.Context, now time.Duration) {
	if !s.mayCall(ctx, now) {
		return
	}
	before := s.calls[object{}] != nil
	s.Agent.lookIfDue(ctx, now)
	if s.Object != nil && !before && s.calls[object{}] != nil {
		s.Object.ReadAgain()
	}
}

// holds tells whether it is not the agent that calls the cloud, or nobody knows yet.
func (s self) holds() bool { return s.mem.Operated || s.Object != nil && !s.out.calls && !s.mem.Calls }

// mayCall returns whether the agent calls the cloud. Where there is a cluster its memory tells, or, without one as after a boot, the node's
// object, which is read once. Until then pods get what the node cache has.
func (s self) mayCall(ctx context.Context, now time.Duration) bool {
	switch {
	case s.mem.Operated:
		return s.hasLeft(ctx, now)
	case s.Object == nil:
		return true
	}
	first, heard := s.Object.First()
	switch calls := !s.holds(); {
	case calls && (!heard || order.AgentCalls(first.View)):
		return true // it needs no API server for that
	case calls:
		s.Log.Warn("the node's NodeNetwork says that an operator calls the cloud, as one from a backup does: the agent calls no more until the operator has ended that")
		s.out.calls, s.out.leftAt, s.mem.Calls, s.view = false, 0, false, view{} // by a view of before, leaks would be deleted
	case !heard:
		s.view.operated, s.view.told = true, []pool.Cause{s.unread()}
		return false
	case order.AgentCalls(first.View):
		s.out.calls, s.mem.Calls, s.unsaved, s.view = true, true, true, view{}
		s.mem.Topologies = topologiesOf(first.Status)
		return true
	}
	s.mem.Operated, s.unsaved = true, true
	return s.hasLeft(ctx, now)
}

// unread says that the node's object is not read yet, and why.
func (a *Agent) unread() pool.Cause {
	words := "the API server has not told of the node's NodeNetwork yet, which says whether an operator calls the cloud for this node"
	if err := a.Object.Wrong(); err != nil {
		return pool.Cause{Kind: pool.OperatorSilent, Words: fmt.Sprintf("%s: %v", words, err)}
	}
	return pool.Cause{Kind: pool.UnderWay, Words: words}
}

// hasLeft tells the operator that the agent calls, and returns whether it may: the status says so, and what the operator's last
// calls did shows in a describe. Pods get what is free meanwhile.
func (s self) hasLeft(ctx context.Context, now time.Duration) bool {
	wait := func(kind pool.Kind, words string) bool {
		s.view.operated, s.view.told = true, []pool.Cause{{Kind: kind, Words: words}}
		return false
	}
	if s.Object == nil {
		return wait(pool.OperatorSilent, "an operator called the cloud for this node last, and there is no cluster to end that; name it in kubernetes.kubeconfig")
	}
	newest, heard := s.Object.Newest()
	switch {
	case !heard:
		c := s.unread()
		return wait(c.Kind, c.Words)
	case newest.Version != "" && newest.Spec.Mode != order.Self:
		s.writeLeave(ctx, newest, now)
		return wait(pool.UnderWay, "the operator is told that the agent calls the cloud")
	case newest.Version != "" && newest.Status.Mode != order.Self:
		s.hear(ctx, newest, now)
		return wait(pool.UnderWay, "the operator ends its calls for the node")
	case s.out.leftAt == 0:
		s.out.leftAt = now
	}
	if now < s.out.leftAt+s.conf.Settle {
		return wait(pool.UnderWay, "the operator's last calls are to show")
	}
	// What it may have been making shows as such, and is no ENI of nobody's before.
	s.Cloud.Recall(cloud.Notes{Begun: newest.Tokens, Listed: s.Cloud.Notes().Listed})
	s.mem.Operated, s.mem.Calls, s.out.calls = false, true, true
	if err := s.remember(); err != nil {
		s.mem.Operated, s.mem.Calls, s.out.calls = true, false, false
		s.noteError(err)
		return wait(pool.CacheUnusable, err.Error())
	}
	s.view, s.describeAt = view{}, now
	return true
}

// writeLeave asks for the calls. What goes back and is not accepted stays: the agent releases it itself.
func (s self) writeLeave(ctx context.Context, from order.Object, now time.Duration) {
	if s.out.outdated != "" && s.out.outdated == versionOf(from) {
		return
	}
	cached, err := s.read(ctx)
	next, store := order.HearLeaving(cached, from.View), s.Object
	if err != nil && !errors.Is(err, nodecache.ErrMissing) && !errors.Is(err, nodecache.ErrBoot) { // what serves pods is not known
		next.SeenEpoch = from.Spec.SeenEpoch
	}
	if next.Mode == from.Spec.Mode && next.SeenEpoch == from.Spec.SeenEpoch {
		if !from.IsAsked() {
			return
		}
		next = order.Repeat(order.View{Spec: next, Status: from.Status})
	}
	s.launch(ctx, &call{key: object{kind: aSpec}, op: writesSpec, id: versionOf(from), epoch: next.SeenEpoch,
		run: func(ctx context.Context, r *result) { r.object, r.err = store.Write(ctx, from, next, order.Asks{}) }}, now)
}

// hear lets a leader that comes while the node leaves take what one before it has accepted, and one that asks for it have another spec.
func (s self) hear(ctx context.Context, from order.Object, now time.Duration) {
	if !s.out.unheard && from.Spec.SeenEpoch != from.Status.Epoch || from.IsAsked() {
		s.writeLeave(ctx, from, now)
	}
}

func (s self) noteWritten(r result, now time.Duration) {
	switch {
	case r.err == nil:
		s.backoffs.clear(of(asksFor))
		s.out.unheard = !r.isHeard()
	case errors.Is(r.err, order.ErrConflict):
		s.out.outdated = r.id
	default:
		s.noteError(r.err)
		s.backoffs.fail(of(asksFor), failure{delay: delayRetry, err: r.err}, now, s.Rand)
	}
}

// again is when what the operator did last shows.
func (s self) again() time.Duration {
	if s.out.leftAt == 0 || !s.mem.Operated {
		return 0
	}
	return s.out.leftAt + s.conf.Settle
}
