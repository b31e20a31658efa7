package operator

import (
	"maps"
	"slices"

	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
)

// spareSlots is how many idle slots a node keeps that is asked for others.
const spareSlots = 1

// lacksRoom tells whether pods of the node wait for what no subnet has.
func (m *member) lacksRoom() bool {
	if !m.isKnown() || m.view.Spec.Waiting == 0 || m.view.Status.Mode != order.Operator {
		return false
	}
	for _, b := range m.network.Status.Causes {
		if b.Reason == "SubnetFull" {
			return len(m.jobs) == 0
		}
	}
	return false
}

// goingBack returns how many addresses the node releases.
func (m *member) goingBack() int {
	return len(order.Addresses(m.view.Status.Limits, m.view.Status.Releasing...)) + len(order.Addresses(m.view.Status.Limits, order.Acceptable(m.view.Spec, m.view.Status)...))
}

// reclaim asks nodes for idle slots where pods of other nodes of the zone wait for what no subnet has: those with most of them first.
// What already goes back, or is there, is not asked for again.
func (t *term) reclaim() {
	need := map[string]int{}
	for _, m := range t.lacking {
		if m.lacksRoom() {
			need[m.node.Zone] += m.view.Spec.Waiting
		}
	}
	if len(need) == 0 && !t.reclaims {
		return
	}
	t.reclaims = len(need) > 0
	for id, s := range t.subnets {
		// What is there they get next; but what the cloud refused since the last describe says more than that.
		if s.state.State != placement.Full || t.now().Mono >= s.state.RetryAt {
			need[s.place.Zone] -= max(0, s.forPlacement(t.tally.targetsIn(id)).Room())
		}
	}
	idle := map[string][]*member{}
	for _, name := range slices.Sorted(maps.Keys(t.members)) {
		m := t.members[name]
		if !m.isKnown() {
			continue
		}
		if need[m.node.Zone] -= m.goingBack(); m.view.Spec.Waiting == 0 {
			idle[m.node.Zone] = append(idle[m.node.Zone], m)
		}
	}
	asked := map[*member]int{}
	for zone, list := range idle {
		var have []int
		for _, m := range list {
			have = append(have, int(m.network.Spec.IdleSlots))
		}
		for i, n := range placement.Reclaim(max(0, need[zone]), have, spareSlots) {
			asked[list[i]] = n
		}
	}
	for name, m := range t.members {
		if m.asksBack != asked[m] {
			m.asksBack = asked[m]
			t.dirty[name] = true
		}
	}
}
