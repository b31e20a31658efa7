package agent

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
)

// writesSpec is the op of a write of the node's object.
const writesSpec = "WriteSpec"

// openIfDue writes what comes before everything else: that the operator is to call, of which boot the spec is, and that
// the object is older than what the node cache has seen.
func (o *ordered) openIfDue(ctx context.Context, now time.Duration) {
	cached, err := o.read(ctx)
	if !o.heard || err != nil && !o.Unusable(err) { // what serves pods is known with the next tick
		return
	}
	next, asks := order.Begin(o.newest.View, o.Boot), o.newest.Asks
	if next.Mode != order.Operator || o.newest.Version == "" {
		// Pods that wait are no reason to hand over what may still be under way.
		if now < o.handsOverAt || now < o.makesAt && o.newest.Version == "" && !o.lacks() {
			return
		}
		next.Mode, next.Families, next.Pool = order.Operator, o.conf.Settings.Families, poolFor(o.conf.Pool, 0, 0)
		var whole bool
		if asks.Handover, whole = o.handover(cached, err); !whole && o.awaitLate(now) {
			return
		}
	} else if o.newest.Status.Mode == order.Operator {
		asks.Handover = nil // it was taken over
	}
	seen := o.seen()
	if !o.isTold() || order.Stale(seen, o.newest.Status) {
		next = order.Seen(cached, order.View{Spec: next, Status: o.newest.Status}, seen)
		if !o.isTold() && sameSpec(next, o.newest.Spec) {
			next = order.Repeat(order.View{Spec: next, Status: o.newest.Status})
		}
	}
	if (!sameSpec(next, o.newest.Spec) || !sameAsks(asks, o.newest.Asks)) && o.endOwnCalls(seen) {
		o.write(ctx, next, asks, nil, now)
	}
}

// seen is the latest status that the agent has seen. An object by which an operator calls while the agent remembers that it calls itself was
// put back: its status is one of before those calls, whatever its revision.
func (o *ordered) seen() order.Head {
	head := o.head()
	if o.mem.Calls && o.newest.Version != "" && !order.AgentCalls(o.newest.View) {
		head.Revision = max(head.Revision, o.newest.Status.Revision) + 1
	}
	return head
}

// endOwnCalls writes down that the agent calls no more, before the operator is asked to: an agent with another provider that came next would
// call beside it.
func (o *ordered) endOwnCalls(seen order.Head) bool {
	if !o.mem.Calls {
		return true
	}
	before := o.mem.Revision
	o.mem.Calls, o.mem.Revision = false, seen.Revision
	if err := o.remember(); err != nil {
		o.mem.Calls, o.mem.Revision = true, before
		o.noteError(err)
		return false
	}
	return true
}

// askIfDue writes what the node needs and what goes back, if that is not what the object says.
func (o *ordered) askIfDue(ctx context.Context, cached *ipam.State, now time.Duration) {
	o.dueAt = 0
	o.noteEmpty(cached, now)
	d, maxPods := o.demand, o.status.MaxPods
	if n, _ := o.MaxPods(); n > 0 {
		maxPods = n
	}
	cooling := max(0, max(o.decision.Most, o.decision.Target)-o.status.Most) // as planSteps has it
	k := asking{view: o.newest.View, cached: cached, now: now, families: o.conf.Settings.Families, pool: poolFor(o.conf.Pool, maxPods, cooling),
		slots: o.decision.Target, waiting: max(0, d.unserved()-d.free), unlinked: o.links.ids(), leaving: append(slices.Sorted(maps.Keys(o.mem.Leaving)), o.emptyENIs(now)...),
		back: slices.Collect(maps.Keys(o.back)), first: o.firstIndex(), holds: o.unsynced}
	next, withdrawn := k.spec()
	var asks order.Asks
	if asks.WaitingSince = o.newest.WaitingSince; next.Waiting == 0 {
		asks.WaitingSince = time.Time{}
	} else if asks.WaitingSince.IsZero() {
		asks.WaitingSince = o.Wall().Truncate(time.Second) // as the object has it
	}
	o.answerReclaim(k, &asks, now)
	due := o.wroteAt + pace
	is := o.newest.Spec
	if o.unheard { // by itself it would be written without end
		is.SeenEpoch = next.SeenEpoch
	}
	if sameSpec(next, is) && sameAsks(asks, o.newest.Asks) {
		if !tellsIdle(o.newest.IdleSlots, asks.IdleSlots) {
			return
		}
		due = o.wroteAt + idleEvery
	}
	if next.Waiting == 0 && o.wroteAt > 0 && now < due {
		o.dueAt = due
		return
	}
	o.write(ctx, next, asks, withdrawn, now)
}

// write begins a write, one at a time.
func (o *ordered) write(ctx context.Context, spec order.Spec, asks order.Asks, withdrawn []netip.Prefix, now time.Duration) {
	from, store := o.newest, o.Object
	if o.outdated != "" && o.outdated == versionOf(from) {
		return // the newer copy is on its way
	}
	key := object{kind: aSpec}
	started := o.launch(ctx, &call{key: key, op: writesSpec, id: versionOf(from), withdrawn: withdrawn, epoch: spec.SeenEpoch, putBack: from.PutBack,
		run: func(ctx context.Context, r *result) { r.object, r.err = store.Write(ctx, from, spec, asks) }}, now)
	if started {
		o.wroteAt = now
	}
	o.hungry = o.hungry || !started && o.calls[key] == nil && !o.refuses(asksFor, now)
}

// versionOf names the version of a copy, none as well.
func versionOf(o order.Object) string { return "version " + o.Version }

// noteWritten takes in what came of a write.
func (o *ordered) noteWritten(r result, now time.Duration) {
	switch {
	case r.err == nil:
		o.backoffs.clear(of(asksFor))
		o.outdated, o.unheard, o.toldBack = "", !r.isHeard(), r.putBack
		o.confirmed = append(o.confirmed, order.Confirmed(r.object.View, r.withdrawn)...)
	case errors.Is(r.err, order.ErrConflict) && r.id != versionOf(order.Object{}):
		o.outdated = r.id
	default: // it may have been done: a newer copy tells. An object that was there and could not be made may be gone again
		o.noteError(r.err)
		o.backoffs.fail(of(asksFor), failure{delay: delayRetry, err: r.err}, now, o.Rand)
		o.Log.Warn("the node's object can't be written", "error", r.err)
	}
}

// isHeard tells whether the API server has kept which leader's status the agent has read: one with older kinds does not.
func (r result) isHeard() bool { return r.object.Spec.SeenEpoch == r.epoch }
