package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beginJob makes the call that a granted place in the queue is for, as the node is now.
func (t *term) beginJob(granted *ticket) {
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
	j := t.newJob(node, node.view, steps[at], granted, now)
	node.jobs[j.ENI], t.running[j] = j, true
	t.noteLimits()
	limits, client, network := node.view.Status.Limits, node.client, node.network
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, j.limit())
		defer cancel()
		out := j.call(ctx, client, limits)
		t.o.Gate.endJob(granted)
		t.post(func(t *term) { t.endJob(node, j, out, network) })
	})
}

func (t *term) newJob(node *member, view order.View, p planned, granted *ticket, now order.Moment) *job {
	j := &job{Step: p.Step, Wish: p.Wish, token: p.token, began: now.Mono, ticket: granted, member: node}
	takes := 0 // it is taken as if all came, until the answer tells
	switch j.Do {
	case pool.Assign:
		takes = j.Count
		for _, e := range view.Status.ENIs {
			if e.ID == j.ENI {
				j.Subnet = e.Subnet
			}
		}
	case pool.Create:
		takes = 1 + max(j.V4, j.V6)
	case pool.Release:
		j.prefixes = node.term.Unassignable(view.Status)[j.ENI]
		node.term.Asked(view.Status, j.prefixes...)
		for _, e := range view.Status.ENIs {
			if e.ID == j.ENI {
				j.Subnet = e.Subnet
			}
		}
	}
	if s := t.subnets[j.Subnet]; s != nil {
		j.moved = s.takes(takes)
	}
	return j
}

// endJob takes in how a call has ended.
func (t *term) endJob(node *member, j *job, out outcome, network *crd.NodeNetwork) {
	now := t.now()
	delete(node.jobs, j.ENI)
	delete(t.running, j)
	t.noteLimits()
	t.dirty[network.Name] = true
	node.deeds = append(node.deeds, j.deeds(out, string(network.UID))...)
	if j.moved != nil {
		j.moved.count, j.moved.ended = j.brings(out, network.Status.Limits.Read()), max(now.Mono, 1)
	}
	if j.Do == pool.Delete && out.err == nil {
		node.removed[j.ENI] = now.Mono + t.o.Lease.Settle
	}
	if out.err == nil {
		node.noteProgress(true, pool.Cause{}, now.Mono)
		return
	}
	why := node.noteRefused(j, out.err, now.Mono)
	if errors.Is(out.err, cloud.ErrThrottled) {
		var e *cloud.Error
		errors.As(out.err, &e)
		t.o.Gate.noteThrottled(j.ticket.last, e.RetryAfter)
		return // the budget is what waits then, not the node
	}
	if s := t.subnets[j.Subnet]; s != nil && errors.Is(out.err, cloud.ErrSubnetFull) {
		s.state = s.state.Refused(now.Mono)
		t.tellSubnet(s)
	}
	if errors.Is(out.err, cloud.ErrNotFound) {
		node.unsure[j.ENI] = now.Mono - t.o.Lease.Settle // only a describe tells
	}
	node.noteProgress(len(out.addrs) > 0, why, now.Mono)
}

// noteLimits keeps when the first of the calls under way has to have ended.
func (t *term) noteLimits() {
	var first time.Time
	for j := range t.running {
		if at := t.lead.Acquired.Add(j.began + j.limit()); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	t.mu.Lock()
	t.oldest = first
	t.mu.Unlock()
}

// together is how long a describe waits for other nodes that need one.
const together = time.Second

// describe begins a describe if one is due, and returns how long until then. Nodes that need one are described together.
func (t *term) describe(now time.Duration) time.Duration {
	if t.looks.under {
		return patience // its end wakes the loop
	}
	due := t.looks.all
	var some []string
	for name, node := range t.members {
		if node.client == nil || !node.isKnown() {
			continue
		}
		if at, is := node.describeDue(node.view, t.now()); is {
			if due = min(due, at+together); at <= now {
				some = append(some, name)
			}
		}
	}
	if due = max(due, t.looks.pause); due > now {
		return due - now
	}
	t.look(some, now >= t.looks.all)
	return patience
}

// seen is what a describe has brought.
type seen struct {
	began  order.Moment
	views  map[string]cloud.View // by instance
	limits map[string]eni.Limits // by node
	places []cloud.Place
	all    bool
	err    error
}

// look describes nodes, or everything, beside the loop.
func (t *term) look(names []string, all bool) {
	t.looks.under = true
	members := map[string]*member{}
	unlimited := map[string]*member{}
	for name, node := range t.members {
		if node.client == nil || node.left || !all && !slices.Contains(names, name) {
			continue
		}
		if members[name] = node; node.limits == (eni.Limits{}) {
			unlimited[name] = node
		}
	}
	clients, types, instances := map[string]cloud.Cloud{}, map[string]string{}, []string{}
	for name, node := range members {
		instances = append(instances, node.node.Instance)
		if unlimited[name] != nil {
			clients[name], types[name] = node.client, node.node.Type
		}
	}
	began := t.now() // before the first request: what a call does meanwhile the describe may lack
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, longJob)
		defer cancel()
		s := t.ask(ctx, instances, clients, types, all)
		s.began = began
		t.post(func(t *term) { t.looked(s, members) })
	})
}

// ask makes the describes. What an instance can carry comes after its ENIs: those that are left out take room.
func (o *Operator) ask(ctx context.Context, instances []string, clients map[string]cloud.Cloud, types map[string]string, all bool) (s seen) {
	s = seen{all: all, limits: map[string]eni.Limits{}}
	if len(instances) > 0 {
		if s.views, s.err = o.o.Region.Look(ctx, instances); s.err != nil {
			return s
		}
	}
	// Of all types in a few requests where the cloud tells that, else instance by instance.
	byType := map[string]eni.Limits{}
	if o.o.Region.Does().Types {
		names := slices.Sorted(maps.Values(types))
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		if byType, s.err = o.o.Region.Limits(ctx, names); s.err != nil {
			return s
		}
	}
	for name, client := range clients {
		l, known := byType[types[name]]
		if !known {
			var err error
			if l, err = client.Limits(ctx); err != nil {
				s.err = cmp.Or(s.err, err)
				continue
			}
		}
		s.limits[name] = l
	}
	if all {
		var err error
		if s.places, err = o.o.Region.Subnets(ctx); err != nil {
			s.err = cmp.Or(s.err, err)
			s.all = false
		}
	}
	return s
}

// looked takes in what a describe has brought.
func (t *term) looked(s seen, members map[string]*member) {
	now := t.now()
	t.looks.under = false
	for name, node := range members {
		if l, known := s.limits[name]; known {
			node.limits = l
		}
		view, is := s.views[node.node.Instance]
		if t.members[name] == node && node.isKnown() && is {
			node.noteDescribe(&shown{s.began, view}, node.view.Status)
			t.dirty[name] = true
		}
	}
	if s.err != nil {
		t.lookFailed(s.err, now.Mono)
		return
	}
	t.looks.misses, t.looks.pause = 0, 0
	if t.looks.failed != nil {
		t.looks.failed = nil
		t.dirtyAll()
	}
	if s.all {
		t.looks.all, t.looks.shown = s.began.Mono+t.o.Describe, s.began.Wall
		t.takePlaces(s)
		t.dirtyAll()
	}
}

// lookFailed takes in that a describe failed: from the second time on the nodes are told.
func (t *term) lookFailed(err error, now time.Duration) {
	t.looks.misses++
	t.looks.pause = now + min(time.Minute, time.Second<<min(t.looks.misses, 6))
	t.o.Log.Warn("a describe failed", "error", err)
	why := causeOf(err)
	why.Words = fmt.Sprint("describes fail: ", err)
	if t.looks.misses >= 2 && (t.looks.failed == nil || t.looks.failed.Kind != why.Kind) {
		t.looks.failed = &why
		t.dirtyAll()
	}
}

func (t *term) dirtyAll() {
	for name := range t.members {
		t.dirty[name] = true
	}
}

// takePlaces takes in the subnets that the cloud shows.
func (t *term) takePlaces(s seen) {
	there := map[string]bool{}
	for _, p := range s.places {
		there[p.ID] = true
		if t.subnets[p.ID] == nil {
			t.subnets[p.ID] = &subnet{}
		}
		known := t.subnets[p.ID]
		known.place, known.lacking, known.began, known.wrote = p, 0, s.began.Mono, false
		known.forgetMoves()
		placed := known.forPlacement(t.goalsIn(p.ID))
		known.state = known.state.Described(s.began.Mono, placed.Room(), placed.IsolateBelow)
	}
	for id, known := range t.subnets {
		if !there[id] {
			known.lacking++
			known.wrote = false
		}
		t.tellSubnet(known)
	}
}

// takeSubnet takes in a copy of a Subnet object.
func (t *term) takeSubnet(object *crd.Subnet, deleted bool) {
	s := t.subnets[object.Name]
	if s == nil {
		s = &subnet{}
		t.subnets[object.Name] = s
	}
	a, b := object.ResourceVersion, ""
	if s.object != nil {
		b = s.object.ResourceVersion
	}
	if cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) <= 0 && s.object != nil && s.object.UID == object.UID && !deleted {
		return
	}
	changed := s.object == nil || deleted || s.object.Generation != object.Generation
	if s.object = object; deleted {
		s.object = nil
	}
	if changed {
		t.dirtyAll() // a subnet of another use, or with another room, may be what nodes wait for
	}
}

// goalsIn returns how much the ENIs of all nodes in a subnet are still to get.
func (t *term) goalsIn(id string) (list []placement.Goal) {
	for _, node := range t.members {
		if node.isKnown() {
			list = append(list, goalsOf(node.view, id)...)
		}
	}
	return list
}

// poolSubnets returns the subnets as the node's plan knows them. One that the cloud does not show to be for nodes counts as
// roomy for the ENIs that are there, until it refuses.
func (t *term) poolSubnets(node *member, now time.Duration) (list []pool.Subnet) {
	who := placement.Node{Zone: node.node.Zone, Labels: node.node.Labels}
	for _, id := range slices.Sorted(maps.Keys(t.subnets)) {
		if s := t.subnets[id]; s.place.ID != "" {
			list = append(list, forPlan(s.forPlacement(t.goalsIn(id)), who, now))
		}
	}
	if node.shown == nil {
		return list
	}
	for _, nic := range node.shown.view.Interfaces {
		if !slices.ContainsFunc(list, func(s pool.Subnet) bool { return s.ID == nic.Subnet }) {
			list = append(list, pool.Subnet{ID: nic.Subnet, Free: 1 << 16})
		}
	}
	return list
}

// choosePlace gives a new ENI its subnet, and returns why it has none.
func (t *term) choosePlace(node *member, view order.View, step *pool.Step, now order.Moment) pool.Cause {
	var all []placement.Subnet
	for id, s := range t.subnets {
		if s.place.ID != "" {
			all = append(all, s.forPlacement(t.goalsIn(id)))
		}
	}
	secondaries := cmp.Or(step.V4, step.V6)
	partial := view.Spec.Pool.Mode != pool.Burstable || view.Spec.Pool.Partial
	chosen, refused := placement.Choose(placement.Node{Zone: node.node.Zone, Labels: node.node.Labels}, placement.Wish{Secondaries: secondaries, Partial: partial}, all, now.Mono)
	// Fewer addresses than asked for are fine for a pool that fills up later.
	switch refused.Why {
	case placement.NoSubnet:
		return pool.Cause{Kind: pool.NoSubnet, Words: refused.Message}
	case placement.SubnetFull:
		return pool.Cause{Kind: pool.SubnetFull, Words: refused.Message}
	}
	if step.Subnet = chosen.Subnet; chosen.Secondaries < secondaries {
		step.V4, step.V6, step.Count = min(step.V4, chosen.Secondaries), min(step.V6, chosen.Secondaries), min(step.Count, chosen.Secondaries)
	}
	return pool.Cause{}
}

// tellSubnet writes what is new of a subnet beside the loop, or makes its object.
func (t *term) tellSubnet(s *subnet) {
	if s.wrote || s.object == nil && s.place.ID == "" {
		return
	}
	if s.object == nil {
		s.wrote = true
		made := &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: s.place.ID}, Spec: crd.SubnetSpec{Use: string(placement.Shared)}}
		t.writeSubnet(s, func(ctx context.Context) (*crd.Subnet, error) { return t.o.Objects.CreateSubnet(ctx, made) })
		return
	}
	var counts subnetCounts
	for _, node := range t.members {
		if node.network == nil {
			continue
		}
		for _, e := range node.network.Status.ENIs {
			if e.Subnet == s.object.Name {
				counts.interfaces++
				counts.addresses += 1 + len(e.Addresses)
			}
		}
	}
	next, changed := s.tell(s.forPlacement(t.goalsIn(s.object.Name)), counts, t.now())
	if !changed {
		return
	}
	s.wrote = true
	t.writeSubnet(s, func(ctx context.Context) (*crd.Subnet, error) { return t.o.Objects.WriteSubnet(ctx, next) })
}

func (t *term) writeSubnet(s *subnet, write func(context.Context) (*crd.Subnet, error)) {
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		written, err := write(ctx)
		t.post(func(t *term) {
			if err != nil {
				return // the watch tells of another version, and the next describe writes it
			}
			t.takeSubnet(written, false)
			s.wrote = false
			t.tellSubnet(s)
		})
	})
}
