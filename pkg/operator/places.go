package operator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
		known.emptied.is = known.emptied.is && known.wasEmpty()
		placed := known.forPlacement(t.tally.targetsIn(p.ID))
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
		if s.older = object; a == b {
			s.older = nil
		}
		return
	}
	s.older = nil
	changed := s.object == nil || deleted || s.object.Generation != object.Generation
	if s.object = object; deleted {
		s.object, s.remakeAt = nil, t.now().Mono+remakeAfter
	}
	if changed {
		t.dirtyAll() // a subnet of another use, or with another room, may be what nodes wait for
	}
}

// poolSubnets returns the subnets as the node's plan knows them. One that the cloud does not show to be for nodes counts as
// roomy for the ENIs that are there, until it refuses.
func (t *term) poolSubnets(node *member, now time.Duration) (list []pool.Subnet) {
	who := placement.Node{Zone: node.node.Zone, Labels: node.node.Labels}
	for _, id := range slices.Sorted(maps.Keys(t.subnets)) {
		if s := t.subnets[id]; s.place.ID != "" {
			list = append(list, forPlan(s.forPlacement(t.tally.targetsIn(id)), who, now))
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
	var barred pool.Cause // of the subnets that refused this node an ENI lately, the one that is tried first
	for id, s := range t.subnets {
		p := node.pauses[attempt{pool.Create, id}]
		switch {
		case s.place.ID == "":
		case p.until <= now.Mono:
			all = append(all, s.forPlacement(t.tally.targetsIn(id)))
		case s.place.Zone == node.node.Zone && (!barred.Is() || p.until < barred.Next):
			barred = p.why
		}
	}
	secondaries := cmp.Or(step.V4, step.V6)
	partial := view.Spec.Pool.Mode != pool.Burstable || view.Spec.Pool.Partial
	chosen, refused := placement.Choose(placement.Node{Zone: node.node.Zone, Labels: node.node.Labels}, placement.NewENI{Secondaries: secondaries, Partial: partial}, all, now.Mono)
	// Fewer addresses than asked for are fine for a pool that fills up later.
	switch refused.Why {
	case placement.NoSubnet, placement.SubnetFull:
		if barred.Is() {
			return barred
		}
	}
	switch refused.Why {
	case placement.NoSubnet:
		if t.makesSubnets() {
			return pool.Cause{Kind: pool.UnderWay} // what the subnets are for is known in a moment
		}
		return pool.Cause{Kind: pool.NoSubnet, Words: refused.Message}
	case placement.SubnetFull:
		return pool.Cause{Kind: pool.SubnetFull, Words: refused.Message}
	}
	if step.Subnet = chosen.Subnet; chosen.Secondaries < secondaries {
		step.V4, step.V6, step.Count = min(step.V4, chosen.Secondaries), min(step.V6, chosen.Secondaries), min(step.Count, chosen.Secondaries)
	}
	return pool.Cause{}
}

// makesSubnets tells whether objects of subnets are being made that the cloud shows.
func (t *term) makesSubnets() bool {
	for _, s := range t.subnets {
		if s.object == nil && s.place.ID != "" && s.wrote {
			return true
		}
	}
	return false
}

// tellSubnet writes what is new of a subnet beside the loop, or makes its object.
func (t *term) tellSubnet(s *subnet) {
	if s.wrote || s.object == nil && s.place.ID == "" {
		return
	}
	if s.object == nil {
		s.wrote, s.kept.unnamed = true, true // an object that was deleted may have named ranges
		made := &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: s.place.ID}, Spec: crd.SubnetSpec{Use: string(placement.Shared)}}
		t.writeSubnet(s, func(ctx context.Context) (*crd.Subnet, error) { return t.o.Objects.CreateSubnet(ctx, made) })
		return
	}
	counts := t.tally[s.object.Name]
	next, changed := s.tell(s.forPlacement(t.tally.targetsIn(s.object.Name)), counts, t.now())
	if !changed {
		return
	}
	s.wrote = true
	before := s.object.Status
	t.writeSubnet(s, func(ctx context.Context) (*crd.Subnet, error) {
		written, err := t.o.Objects.WriteSubnet(ctx, next)
		if err == nil {
			t.tellPeople(append(subnetNotices(written, before), keptNotices(written, before)...)...)
		}
		return written, err
	})
}

// remake makes the object again that somebody has deleted, perhaps with all of its kind: until then no ENI comes into the subnet, and a
// describe may be minutes away. It returns in how long it is to be done.
func (t *term) remake(s *subnet, now time.Duration) time.Duration {
	switch {
	case s.object != nil || s.remakeAt == 0:
		return patience
	case now < s.remakeAt:
		return s.remakeAt - now
	}
	s.remakeAt, s.wrote = 0, false
	t.tellSubnet(s)
	return patience
}

func (t *term) writeSubnet(s *subnet, write func(context.Context) (*crd.Subnet, error)) {
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		written, err := write(ctx)
		t.post(func(t *term) {
			conflict := errors.Is(err, ErrConflict)
			if conflict {
				t.o.Meter.Conflicted()
			}
			if conflict && s.older != nil {
				s.object, s.older = s.older, nil // the store was put back: what the watch told last is what there is
				t.dirtyAll()
			}
			if err != nil {
				s.remakeAt = t.now().Mono + remakeAfter
				return // the watch tells of another version, and the next describe writes it
			}
			t.takeSubnet(written, false)
			s.wrote = false
			t.tellSubnet(s)
		})
	})
}
