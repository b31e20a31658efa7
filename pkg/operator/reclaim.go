package operator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
)

const (
	// spareSlots is how many idle slots a node keeps that is asked for others.
	spareSlots = 1

	// answers is how long a node has for its answer: so long what it is asked for counts as on its way.
	answers = 30 * time.Second

	// calm is how long no pod of a zone has waited for what no subnet has when its nodes may have back what they do without.
	calm = time.Minute
)

// lacksRoom tells whether pods of the node wait for what no subnet has.
func (m *member) lacksRoom() bool {
	if !m.isKnown() || m.view.Spec.Waiting == 0 || m.view.Status.Mode != order.Operator {
		return false
	}
	for _, b := range m.network.Status.Causes {
		if order.Reason(b.Reason) == order.ReasonOf(pool.SubnetFull) {
			return len(m.jobs) == 0
		}
	}
	return false
}

// unserved returns how many slots pods of the node wait for and nobody has given it. What came since its agent said how many
// wait is not in the agent's words yet, and what a call brought that has just ended is not in the status.
func (m *member) unserved() int {
	if m.writing || len(m.deeds) > 0 {
		return 0
	}
	return max(0, m.view.Spec.Waiting-max(0, order.Have(m.view.Spec, m.view.Status)-m.had))
}

// goingBack returns how many addresses the node releases.
func (m *member) goingBack() int {
	return len(order.Addresses(m.view.Status.Limits, m.view.Status.Releasing...)) + len(order.Addresses(m.view.Status.Limits, order.Acceptable(m.view.Spec, m.view.Status)...))
}

// hasAnswered tells whether the node's agent has taken in all that it is asked for.
func (m *member) hasAnswered() bool { return int(m.network.Spec.SeenReclaim) >= m.asksBack }

// takeReclaim notes what a new copy of the object says of that.
func (m *member) takeReclaim(isFirst, isNewSpec bool) {
	if isFirst {
		m.asksBack = int(m.network.Status.Reclaim) // an earlier leader asked for it
	}
	if isFirst || isNewSpec {
		m.had = order.Have(m.view.Spec, m.view.Status)
	}
}

// zoneNeed is what the pods of a zone lack, and who has something that they could have.
type zoneNeed struct {
	starves  bool
	need     int // slots that pods wait for, without what is there or on its way for them
	room     int // addresses that the subnets have
	idle     []*member
	deprived []*member // nodes that do without something
}

// reclaim asks nodes for idle slots where pods of other nodes of the zone wait for what no subnet has: those with most of them first.
// What already goes back, or is there, is not asked for again. A node does without what it gave until the zone has room for it.
func (t *term) reclaim() {
	zones := map[string]*zoneNeed{}
	for _, m := range t.lacking {
		if m.lacksRoom() || m.asksBack > 0 {
			zones[m.node.Zone] = &zoneNeed{}
		}
	}
	if t.reclaims = len(zones) > 0; !t.reclaims {
		clear(t.starved)
		return
	}
	now := t.now().Mono
	t.countRoom(zones)
	for _, name := range slices.Sorted(maps.Keys(t.members)) {
		if m := t.members[name]; m.isKnown() && zones[m.node.Zone] != nil {
			t.count(zones[m.node.Zone], m, now)
		}
	}
	for zone, z := range zones {
		if _, is := t.starved[zone]; z.starves || !is {
			t.starved[zone] = now
		}
		switch {
		case z.need > z.room:
			t.askIdle(z, now)
		case now-t.starved[zone] >= calm:
			t.askNoMore(z)
		}
	}
}

// countRoom adds up what the subnets of the zones have left: what the cloud refused since the last describe says more than that.
func (t *term) countRoom(zones map[string]*zoneNeed) {
	for id, s := range t.subnets {
		z := zones[s.place.Zone]
		if z == nil || s.settings().Use != placement.Shared || !s.isDescribed() {
			continue
		}
		z.room += max(0, s.placed(t.tally.targetsIn(id), s.wasEmpty()).Room())
	}
}

// count counts a node of the zone. One that does not answer is asked no more until its agent has written something.
func (t *term) count(z *zoneNeed, m *member, now time.Duration) {
	if m.view.Status.Mode != order.Operator {
		m.asksBack = 0 // the status says so by its mode
	}
	if !m.hasAnswered() && m.askedAt == 0 { // an earlier leader asked
		m.askedAt = max(now, 1)
	}
	if !m.hasAnswered() && now-m.askedAt >= answers {
		m.asksBack, m.deaf = int(m.network.Spec.SeenReclaim), m.network.Generation
		t.dirty[m.network.Name] = true
	}
	if m.asksBack > 0 {
		z.deprived = append(z.deprived, m)
	}
	if m.lacksRoom() {
		z.starves = true
		z.need += m.unserved()
	}
	z.need -= m.goingBack()
	switch {
	case m.view.Status.Mode != order.Operator:
	case !m.hasAnswered():
		z.need -= m.asksBack - int(m.network.Spec.SeenReclaim)
	case m.view.Spec.Waiting == 0 && m.network.Generation != m.deaf:
		z.idle = append(z.idle, m)
	}
}

// askIdle asks the nodes with most idle slots for what is missing.
func (t *term) askIdle(z *zoneNeed, now time.Duration) {
	var have []int
	for _, m := range z.idle {
		have = append(have, int(m.network.Spec.IdleSlots))
	}
	for i, n := range placement.Reclaim(z.need-z.room, have, spareSlots) {
		if n > 0 {
			m := z.idle[i]
			m.asksBack, m.askedAt = m.asksBack+n, max(now, 1)
			t.dirty[m.network.Name] = true
		}
	}
}

// askNoMore lets those nodes have back what they do without for whom there is room, the smallest parts first.
func (t *term) askNoMore(z *zoneNeed) {
	slices.SortStableFunc(z.deprived, func(a, b *member) int { return cmp.Compare(a.asksBack, b.asksBack) })
	for _, m := range z.deprived {
		if z.room -= m.asksBack; z.room < 0 {
			return
		}
		m.asksBack = 0
		t.dirty[m.network.Name] = true
	}
}
