package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
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
		known.place, known.lacking, known.began = p, 0, s.began.Mono
		known.forgetMoves(s.began.Mono)
		known.emptied.is = known.emptied.is && known.wasEmpty()
		placed := known.forPlacement(t.tally.targetsIn(p.ID))
		known.state = known.state.Described(s.began.Mono, placed.Room(), placed.IsolateBelow)
	}
	for id, known := range t.subnets {
		if !there[id] {
			if known.lacking++; !known.isDescribed() {
				known.forgetMoves(s.began.Mono) // what the cloud showed of it before counts no more
			}
		}
		t.tellSubnet(known)
	}
}

// takeSubnet takes in a copy of a Subnet object. One that somebody has deleted is made again as it was: what people said of the subnet counts.
func (t *term) takeSubnet(object *crd.Subnet, deleted bool) {
	s := t.subnets[object.Name]
	if s == nil {
		s = &subnet{}
		t.subnets[object.Name] = s
	}
	switch {
	case deleted && (s.object != nil && s.object.UID != object.UID || s.object == nil && s.deleted == object.UID):
		return // the watch lags: that is known, and it is there again or is being made
	case deleted:
		t.dropSubnet(s, object)
		return
	case s.deleted == object.UID && object.UID != "":
		if s.object == nil {
			s.older = object // of before that, unless the store was put back
		}
		return
	}
	a, b := object.ResourceVersion, ""
	if s.object != nil {
		b = s.object.ResourceVersion
	}
	if cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) <= 0 && s.object != nil {
		if s.older = object; a == b {
			s.older = nil
		}
		return
	}
	s.older = nil
	changed := s.object == nil || s.object.Generation != object.Generation || s.object.UID != object.UID
	if s.object, s.spec = object, &object.Spec; changed {
		t.dirtyAll() // a subnet of another use, or with another room, may be what nodes wait for
	}
}

// poolSubnets returns the subnets as the node's plan knows them. One that the cloud does not show to be for nodes counts as
// roomy for the ENIs that are there, until it refuses.
func (t *term) poolSubnets(node *member, now time.Duration) (list []pool.Subnet) {
	who := placement.Node{Zone: node.node.Zone, Labels: node.node.Labels}
	for _, id := range slices.Sorted(maps.Keys(t.subnets)) {
		s := t.subnets[id]
		if !s.isDescribed() {
			continue
		}
		p := s.forPlacement(t.tally.targetsIn(id))
		if s.object == nil {
			p.Use = placement.Shared // its object is being made: that no subnet takes a new ENI would be told too soon
		}
		known := forPlan(p, who, now)
		if s.object == nil && s.refused != "" {
			known.NoNew = pool.Cause{Kind: pool.NoSubnet, Object: id, Words: fmt.Sprintf("the object of subnet %s can't be made: %s", id, s.refused)}
		}
		list = append(list, known)
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
