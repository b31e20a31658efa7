package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

const (
	// pace is how often the spec is written while no pod waits: every write goes to the operator's
	// replicas and into the history of the API server's store.
	pace = time.Second

	// silence is how long the operator may be without an answer while pods wait, or before it serves the node, until people are told.
	silence = time.Minute

	// changeOver is within which time the objects of nodes that lack nothing are made when a cluster
	// leaves its calls to an operator: the API server can't make those of thousands at once.
	changeOver = 30 * time.Second
)

// ordered is the supply of a node whose cloud the operator calls.
type ordered struct {
	*Agent
	newest order.Object // the copy that the tick goes by
	heard  bool         // there was one since the start

	lateUntil   time.Duration            // until when a handover waits that is more than the object takes, 0: it was not
	handsOverAt time.Duration            // when no call of an earlier agent is under way any more
	makesAt     time.Duration            // when the object of a node that lacks nothing is made
	wroteAt     time.Duration            // when the last write began
	dueAt       time.Duration            // when one may begin that came too soon after that, 0 for none
	silentSince time.Duration            // since when the operator has not answered, 0 for not
	outdated    string                   // the version that the last write was too old for, "" for none
	unheard     bool                     // the API server does not keep whose status the agent has read: its kinds are older
	toldBack    int                      // how often the store had been put back when the operator was told last
	kept        kept                     // what outlasts a boot
	emptySince  map[string]time.Duration // by id: since when ENIs of topologies carry nothing

	going     map[netip.Addr]bool // they go back, or may
	back      map[netip.Addr]bool // releases that the plan cancels
	confirmed []netip.Addr        // withdrawn ones: the answer of that write shows that they are the node's
}

func newOrdered(a *Agent) *ordered { return &ordered{Agent: a} }

// beginLife notes what the memory of an earlier agent makes this one wait for.
func (o *ordered) beginLife(now time.Duration) {
	m := &o.mem
	if !m.Operated && len(m.Creates)+len(m.Begun)+len(m.Leaving)+len(m.Unsure) > 0 {
		o.handsOverAt = now + 2*o.conf.Cloud.Timeout + o.conf.Settle
	}
	if m.Scale != nil {
		o.makesAt = now + time.Duration(o.Rand.Int64N(int64(changeOver)))
	}
}

func (o *ordered) lookIfDue(ctx context.Context, now time.Duration) {
	if newest, heard := o.Object.Newest(); heard {
		if newest.Version != o.newest.Version {
			o.outdated = "" // a version comes again with a store that was put back, and none with each deletion
		}
		o.newest, o.heard = newest, true
	}
	switch {
	case !o.heard || o.newest.Answered():
		o.silentSince = 0
	case o.silentSince == 0:
		o.silentSince = now
	}
	if o.isUsable() {
		o.takeIn(now)
	} else {
		o.openIfDue(ctx, now)
	}
	o.view.operated, o.view.told = true, o.toldCauses(now)
	o.status.AskedBack = o.newest.Reclaim
}

// isUsable tells whether the newest copy says what the node has: it is of this boot and not older than what the node cache
// has seen, and the operator calls the cloud. One that says so while the agent still remembers its own calls was put back.
func (o *ordered) isUsable() bool {
	spec, status := o.newest.Spec, o.newest.Status
	return o.heard && !o.mem.Calls && spec.Mode == order.Operator && status.Mode == order.Operator && spec.Boot == o.Boot &&
		status.Limits != (eni.Limits{}) && hasPrimary(status) && !order.Stale(o.head(), status) && o.isTold()
}

// head is the latest status that the node cache may have seen, or after a boot the node.
func (o *ordered) head() order.Head {
	if o.mem.Revision == 0 {
		return o.kept.head
	}
	return order.Head{Revision: o.mem.Revision, Epoch: o.mem.Epoch}
}

// isTold tells whether the agent has written since the store was put back: what it wanted then counts for the operator until it has. An operator that
// has met what was put back later than the agent asks for another word.
func (o *ordered) isTold() bool { return o.toldBack >= o.newest.PutBack && !o.newest.IsAsked() }

// isTakenIn tells whether it is usable and its revision is written down.
func (o *ordered) isTakenIn() bool {
	return o.isUsable() && o.view.known && o.mem.Revision >= o.newest.Status.Revision && o.mem.Epoch == o.newest.Status.Epoch
}

// hasPrimary tells whether a describe has told the operator of the node: each has its primary ENI. Of a status without it nothing
// is missing.
func hasPrimary(s order.Status) bool {
	return slices.ContainsFunc(s.ENIs, func(e order.ENI) bool { return e.Index == 0 && e.State == order.Attached })
}

// takeIn makes the view of the newest copy, and of the memory what is about calls. The revision is written down before
// anything follows from it.
func (o *ordered) takeIn(now time.Duration) {
	m, spec, status := &o.mem, o.newest.Spec, o.newest.Status
	if before := o.head(); !m.Operated || before.Revision < status.Revision || before.Epoch != status.Epoch {
		o.keep(order.Head{Revision: status.Revision, Epoch: status.Epoch})
		m.Revision, m.Epoch, m.Operated, m.Creates, m.Unsure = status.Revision, status.Epoch, true, nil, map[string]time.Duration{}
		m.Topologies = topologiesOf(status)
		if err := o.remember(); err != nil {
			m.Revision, m.Epoch = before.Revision, before.Epoch
			o.noteError(err)
			o.Events.Error("memory")
			return
		}
	}
	o.noteTried()
	m.Begun, o.going = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, addr := range order.Addresses(status.Limits, status.Releasing...) {
		m.Begun[addr], o.going[addr] = true, true
	}
	for _, addr := range order.Addresses(status.Limits, spec.Release...) {
		o.going[addr] = true
	}
	accepted, shown := setOf(status.LeavingInterfaces), map[string]bool{}
	for _, e := range status.ENIs {
		shown[e.ID] = true
	}
	if !o.view.known { // what an earlier agent asked for
		for _, id := range spec.ReleaseInterfaces {
			m.Leaving[id] = false
		}
	}
	for id := range accepted {
		m.Leaving[id] = true
	}
	for id := range m.Leaving {
		if m.Leaving[id] = accepted[id]; !shown[id] {
			delete(m.Leaving, id)
		}
	}
	o.view = viewOf(status, now)
	o.view.askedIn = askedIn(o.newest)
}

// viewOf returns what a status tells of the cloud. What pods without a topology can't have is left out.
func viewOf(status order.Status, now time.Duration) view {
	out := map[netip.Addr]bool{}
	for _, q := range status.Quarantined {
		for _, addr := range order.Addresses(status.Limits, q.Prefix) {
			out[addr] = true
		}
	}
	for _, r := range status.Reserved {
		out[r.Addr] = true
	}
	v := view{known: true, start: now, limits: status.Limits}
	for _, e := range status.ENIs {
		if e.Topology != "" {
			continue
		}
		nic := cloud.Interface{ID: e.ID, Index: e.Index, MAC: e.MAC, Subnet: e.Subnet, V4: e.V4, V6: e.V6, Token: e.Token, Ours: e.Index > 0}
		if e.State == order.Creating || e.State == order.Detached {
			nic.Index = -1
		}
		for _, addr := range order.Addresses(status.Limits, e.Addresses...) {
			if !out[addr] {
				nic.Addresses = append(nic.Addresses, addr)
			}
		}
		v.enis = append(v.enis, nic)
	}
	return v
}

// act does what the operator leaves to the agent. Releases that are cancelled go out with the next write.
func (o *ordered) act(ctx context.Context, steps []pool.Step, now time.Duration) (errs []error) {
	o.back = map[netip.Addr]bool{}
	for _, step := range order.AgentSteps(steps) {
		if step.Do != pool.Restore {
			errs = append(errs, o.doStep(ctx, step, now))
			continue
		}
		if o.mem.isLeaving(step.ENI) {
			if err := o.keepENI(step.ENI); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		for _, addr := range step.Addrs {
			o.back[addr] = true
		}
	}
	if o.isTakenIn() && o.cached != nil {
		for _, addr := range reservedAgain(o.cached, o.newest.Status.Reserved) {
			o.back[addr] = true
		}
	}
	return errs
}

// finish publishes what goes back, once the kernel has forgotten it, with what the node asks for.
func (o *ordered) finish(ctx context.Context, cached *ipam.State, now time.Duration, earlier error) (err error) {
	if o.unsynced && !o.backoffs.active(of(compares), now) {
		err = o.sync(ctx, now, comparedForCache)
	}
	if !errors.As(errors.Join(earlier, err), new(*memoryError)) { // else it is tried, and told, once more
		err = errors.Join(err, o.save())
	}
	if o.isTakenIn() && o.sized {
		o.askIfDue(ctx, cached, now)
	}
	return err
}

func (o *ordered) goesBack(addr netip.Addr) bool { return o.going[addr] }

func (o *ordered) again() time.Duration {
	if o.heard && o.newest.Version == "" && o.lacks() && o.Now() < o.makesAt {
		return o.Now() + soon // pods wait for the object
	}
	first := o.dueAt
	for _, at := range []time.Duration{o.handsOverAt, o.makesAt, o.silentSince + silence, o.emptyAgain(o.Now())} {
		if now := o.Now(); at > now && (first <= now || at < first) {
			first = at
		}
	}
	return first
}

// lacks tells whether pods wait and nothing is free for them.
func (o *ordered) lacks() bool { return o.demand.unserved() > o.demand.free }

// toldCauses returns why the node gets no more, as far as the object and the operator's silence tell.
func (o *ordered) toldCauses(now time.Duration) (list []pool.Cause) {
	switch {
	case !o.heard:
		return []pool.Cause{o.unread()}
	case o.silentSince > 0 && now-o.silentSince >= silence && (o.lacks() || !o.isUsable()):
		since := o.Wall().Add(o.silentSince - now).Format("15:04")
		list = append(list, pool.Cause{Kind: pool.OperatorSilent, Words: "no answer from the operator since " + since})
	case !o.isUsable():
		list = append(list, pool.Cause{Kind: pool.UnderWay, Words: "the operator has not taken over the node yet"})
	}
	if n := o.newest.Reclaim; n > 0 {
		list = append(list, reclaimCause(n))
	}
	if err := o.Object.Wrong(); err != nil {
		list = append(list, pool.Cause{Kind: pool.OperatorSilent, Words: fmt.Sprintf("the node's NodeNetwork can't be read: %v", err)})
	}
	for _, e := range o.newest.Status.ENIs {
		if e.State == order.Unknown {
			list = append(list, pool.Cause{Kind: pool.CallFailed, Object: e.ID, Words: fmt.Sprintf("ENI %s is %q, which this release does not know: pods get none of its addresses", e.ID, e.Said)})
		}
	}
	for _, b := range o.newest.Causes {
		c := pool.Cause{Kind: b.Reason.Kind(), Words: "operator: " + string(b.Reason)}
		if b.Message != "" {
			c.Words = "operator: " + b.Message
		}
		if !b.Until.IsZero() {
			c.Next = now + b.Until.Sub(o.Wall())
		}
		list = append(list, c)
	}
	return list
}
