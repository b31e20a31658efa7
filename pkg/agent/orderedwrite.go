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
	if !o.heard {
		return
	}
	next, asks := order.Begin(o.newest.View, o.Boot), o.newest.Asks
	if next.Mode != order.Operator || o.newest.Version == "" {
		// Pods that wait are no reason to hand over what may still be under way.
		if now < o.handsOverAt || now < o.makesAt && o.newest.Version == "" && !o.lacks() {
			return
		}
		next.Mode, next.Families, next.Pool = order.Operator, o.conf.Settings.Families, poolFor(o.conf.Pool, 0, 0)
		asks.Handover = o.handover(ctx)
	} else if o.newest.Status.Mode == order.Operator {
		asks.Handover = nil // it was taken over
	}
	if order.Stale(o.mem.Revision, o.newest.Status) || !o.isTold() {
		book, err := o.read(ctx)
		if err != nil {
			book = nil // there is nothing that serves pods
		}
		next = order.Seen(book, order.View{Spec: next, Status: o.newest.Status}, o.mem.Revision)
	}
	if !sameSpec(next, o.newest.Spec) || !sameAsks(asks, o.newest.Asks) {
		o.write(ctx, next, asks, nil, now)
	}
}

// handover is what the cloud may have heard of from this node's agents, nil where there was none in this boot: to say
// that there was, though nothing is under way, makes the operator describe before it tells what the node has.
func (o *ordered) handover(ctx context.Context) *order.Handover {
	book, err := o.read(ctx)
	m := &o.mem
	if err != nil && m.Scale == nil && !m.Operated {
		return nil
	}
	h := &order.Handover{}
	for _, c := range m.Creates {
		h.Tokens = append(h.Tokens, c.Token)
	}
	for _, addr := range slices.SortedFunc(maps.Keys(m.Begun), netip.Addr.Compare) {
		h.Release = append(h.Release, netip.PrefixFrom(addr, addr.BitLen()))
		if err != nil {
			continue
		}
		// Whether it is of a delegated prefix or beside them the operator knows: one of both names it.
		bits := book.Settings.V4Block
		if addr.Is6() {
			bits = book.Settings.V6Block
		}
		if p, wrong := addr.Prefix(bits); bits > 0 && wrong == nil && !slices.Contains(h.Release, p) {
			h.Release = append(h.Release, p)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.Leaving)) {
		if m.Leaving[id] {
			h.ReleaseInterfaces = append(h.ReleaseInterfaces, id)
		}
	}
	return h
}

// askIfDue writes what the node needs and what goes back, if that is not what the object says.
func (o *ordered) askIfDue(ctx context.Context, book *ipam.State, now time.Duration) {
	o.dueAt = 0
	d, maxPods := o.demand, o.status.MaxPods
	if n, _ := o.MaxPods(); n > 0 {
		maxPods = n
	}
	cooling := max(0, max(o.decision.Most, o.decision.Target)-o.status.Most) // as planSteps has it
	k := asking{view: o.newest.View, book: book, now: now, families: o.conf.Settings.Families, pool: poolFor(o.conf.Pool, maxPods, cooling),
		slots: o.decision.Target, waiting: max(0, d.unserved()-d.free), unlinked: o.links.ids(), leaving: slices.Sorted(maps.Keys(o.mem.Leaving)),
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
	if sameSpec(next, o.newest.Spec) && sameAsks(asks, o.newest.Asks) {
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
	started := o.launch(ctx, &call{key: key, op: writesSpec, id: versionOf(from), withdrawn: withdrawn,
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
		o.outdated = ""
		o.confirmed = append(o.confirmed, order.Confirmed(r.object.View, r.withdrawn)...)
	case errors.Is(r.err, order.ErrConflict):
		o.outdated = r.id
	default: // it may have been done: a newer copy tells
		o.noteError(r.err)
		o.backoffs.fail(of(asksFor), failure{delay: delayRetry, err: r.err}, now, o.Rand)
		o.Log.Warn("the node's object can't be written", "error", r.err)
	}
}
