package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/quota"
)

// beginJob makes the call that a granted place in the queue is for, as the node is now.
func (t *term) beginJob(granted *ticket) {
	if name, is := strings.CutPrefix(granted.Node, upkeepOf); is {
		t.beginUpkeep(name, granted)
		return
	}
	name := granted.Node
	node := t.members[name]
	if node == nil || node.network == nil || node.writing || node.left || len(node.deeds) > 0 {
		t.o.Gate.endJob(granted)
		t.dirty[name] = true
		return
	}
	now := t.now()
	steps, _ := t.plan(node, node.view, now)
	at := slices.IndexFunc(steps, func(s planned) bool { return s.Action == granted.Action && s.Object == granted.Object })
	if at < 0 {
		t.o.Gate.endJob(granted) // it needs nothing any more
		t.dirty[name] = true
		return
	}
	if steps[at].Class == quota.Starving && len(steps[at].bring) == 0 && !t.shareRoom(node, &steps[at].Step, now.Mono) {
		t.o.Gate.endJob(granted) // others have waited longer for what is left
		t.dirty[name] = true
		return
	}
	j := t.newJob(node, node.view, steps[at], granted, now)
	node.jobs[j.ENI], t.running[j] = j, true
	t.o.Meter.Waited(j.Class, max(0, now.Mono-j.Since))
	t.noteLimits()
	limits, client, network, instance := node.view.Status.Limits, node.client, node.network, node.node.Instance
	t.beginExact(j)
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, j.limit())
		defer cancel()
		out := j.call(ctx, client, t.o.Region, instance, limits)
		t.o.Gate.endJob(granted)
		t.post(func(t *term) { t.endJob(node, j, out, network) })
	})
}

func (t *term) newJob(node *member, view order.View, p planned, granted *ticket, now order.Moment) *job {
	j := &job{Step: p.Step, Request: p.Request, exact: p.exact, token: p.token, began: now.Mono, ticket: granted, member: node}
	if j.Do == pool.Release {
		if !j.cross { // the subnet that has them again is one
			j.prefixes = t.withoutKept(view.Status, node.term.Unassignable(view)[j.ENI])
		}
		for _, p := range j.take {
			if !slices.Contains(j.prefixes, p) {
				j.prefixes = append(j.prefixes, p)
			}
		}
		node.term.Asked(view.Status, j.prefixes...)
	}
	if _, shown := node.shown.findENI(j.ENI); shown && (j.Do == pool.Release || j.Do == pool.Delete) {
		node.former = "" // from now on what is open may be about the instance that there is
	}
	// It is taken as if all came, until the answer tells.
	if s := t.subnets[j.Subnet]; s != nil {
		j.moved = s.takes(p.takes())
	}
	delete(node.wants, j.Subnet)
	return j
}

// shareRoom lets a node have its part of what a subnet has left, where pods of several nodes wait for more than that: nobody gets more
// while another could have as much. It returns false if there is nothing for the node.
func (t *term) shareRoom(node *member, step *pool.Step, now time.Duration) bool {
	s := t.subnets[step.Subnet]
	if s == nil || !s.isDescribed() || node.wants[step.Subnet] == 0 || node.view.Spec.Waiting == 0 {
		return true
	}
	// What is under way to one of them is part of what is shared, or it would be served twice.
	var waiting []*member
	sum, supply := 0, s.forPlacement(t.tally.targetsIn(step.Subnet)).Room()
	for _, other := range t.starving {
		if n := other.wantsIn(step.Subnet) + other.comingFrom(step.Subnet); n > 0 && other.view.Spec.Waiting > 0 {
			waiting = append(waiting, other)
			sum += n
			supply += other.comingFrom(step.Subnet)
		}
	}
	if sum <= supply || len(waiting) < 2 {
		return true
	}
	slices.SortFunc(waiting, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.waits.mono, b.waits.mono), cmp.Compare(a.node.Name, b.node.Name))
	})
	var wants []int
	for _, other := range waiting {
		wants = append(wants, other.wantsIn(step.Subnet)+other.comingFrom(step.Subnet))
	}
	part := placement.Share(supply, wants)[slices.Index(waiting, node)] - node.comingFrom(step.Subnet)
	if step.Do == pool.Create {
		part-- // its primary address
		step.V4, step.V6 = min(step.V4, part), min(step.V6, part)
	}
	if step.Count = min(step.Count, part); part > 0 {
		return true
	}
	why := pool.Cause{Kind: pool.SubnetFull, Object: step.Subnet, Next: now + firstPause, Words: fmt.Sprintf("pods of other nodes wait for what subnet %s has left", step.Subnet)}
	if step.Do == pool.Create {
		node.pauses[attemptOf(*step)] = pause{until: why.Next, why: why}
	} else {
		node.noMore[step.ENI] = why
	}
	return false
}

// takes returns how many addresses of its subnet a call takes.
func (p planned) takes() int {
	switch p.Do {
	case pool.Assign:
		return p.Count
	case pool.Create:
		return 1 + max(p.V4, p.V6)
	}
	return 0
}

// endJob takes in how a call has ended.
func (t *term) endJob(node *member, j *job, out outcome, network *crd.NodeNetwork) {
	now := t.now()
	t.noteCall(endedCall(network.Name, j, out, network.Status.Limits.Read(), now.Wall))
	delete(node.jobs, j.ENI)
	delete(t.running, j)
	t.noteLimits()
	t.dirty[network.Name] = true
	node.deeds = append(node.deeds, j.deeds(out, string(network.UID))...)
	t.endExact(j, out, now)
	if j.moved != nil {
		j.moved.count, j.moved.ended = j.brings(out, network.Status.Limits.Read()), max(now.Mono, 1)
		if s := t.subnets[j.Subnet]; s != nil {
			s.sums = nil
		}
	}
	if j.Do == pool.Delete && out.err == nil {
		node.removed[j.ENI] = now.Mono + t.o.Lease.Settle
		if !slices.Contains(network.Status.LeavingInterfaces, j.ENI) {
			t.o.Meter.LeaksDeleted(1)
			t.tellPeople(leakDeleted(network, j.ENI))
		}
	}
	if s := t.subnets[j.Subnet]; s != nil && j.Do == pool.Release && out.err == nil {
		t.hasRoom(s, now.Mono)
	}
	if out.err == nil {
		node.noteProgress(j.Step, true, pool.Cause{}, now.Mono)
		return
	}
	if j.ticket.unsent {
		if errors.Is(out.err, cloud.ErrUnknown) {
			node.unsure[j.ENI] = now.Mono // requests of it that were sent before
		}
		return // its last one was not, so the cloud has refused nothing
	}
	if len(j.bring) > 0 && (isOfAddresses(out.err) || j.isUncrossed(out.err)) {
		return // the ENI can have others
	}
	why := node.noteRefused(j, out.err, now.Mono)
	if errors.Is(out.err, cloud.ErrThrottled) {
		t.o.Gate.noteThrottled(j.ticket.last, retryAfter(out.err))
		return // the budget is what waits then, not the node
	}
	if s := t.subnets[j.Subnet]; s != nil && errors.Is(out.err, cloud.ErrSubnetFull) {
		s.noteRefused(now.Mono)
		t.tellSubnet(s)
	}
	if errors.Is(out.err, cloud.ErrNotFound) {
		node.unsure[j.ENI] = now.Mono - t.o.Lease.Settle // only a describe tells
	}
	node.noteProgress(j.Step, len(out.addrs) > 0, why, now.Mono)
}

// hasRoom takes in that a subnet has something again: it is tried at once by those whose pods wait for that.
func (t *term) hasRoom(s *subnet, now time.Duration) {
	s.state.RetryAt = min(s.state.RetryAt, now)
	for name, m := range t.starving {
		if m.lacksRoom() {
			m.forgetFull(s.place.ID)
			t.dirty[name] = true
		}
	}
}

// retryAfter returns how long the cloud asks to wait.
func retryAfter(err error) time.Duration {
	if e, is := errors.AsType[*cloud.Error](err); is {
		return e.RetryAfter
	}
	return 0
}
