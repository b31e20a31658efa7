package operator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
)

const (
	// spareSlots is how many idle slots a node keeps that is asked for others.
	spareSlots = 1

	// answers is how long a node has for its answer: so long what it is asked for counts as on its way.
	answers = 30 * time.Second

	// calm is how long no pod has waited for addresses of a subnet when nodes may have back what they do without there.
	calm = time.Minute
)

// lacksRoom tells whether pods of the node wait for what no subnet has. What the leader before has told of that is no reason to ask others.
func (m *member) lacksRoom() bool {
	if !m.isKnown() || m.shown == nil || m.view.Spec.Waiting == 0 || m.view.Status.Mode != order.Operator {
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

// doesWithout returns how many slots the node would take if it were asked for none any more. What it was asked for all in all says more than
// that: most of it pods of its own have got since, and it was asked for it again. A pool keeps fewer idle than two batches, or what its settings name.
func (m *member) doesWithout() int {
	spec, status := m.view.Spec, m.view.Status
	have := order.Have(spec, status)
	idle := max(2*spec.Pool.Scale.Batch, spec.Pool.PreAllocate, spec.Pool.MinAllocate-have)
	return min(m.asksBack, idle, max(0, order.Cap(spec, status, 0)-have))
}

// hasAnswered tells whether the node's agent has taken in all that it is asked for.
func (m *member) hasAnswered() bool { return int(m.network.Spec.SeenReclaim) >= m.asksBack }

// takeReclaim notes what a new copy of the object says of that.
func (m *member) takeReclaim(isFirst, isNewSpec bool) {
	if isFirst {
		m.asksBack, m.asksIn = int(m.network.Status.Reclaim), m.network.Status.ReclaimIn // an earlier leader asked for it
	}
	if isFirst || isNewSpec {
		m.had = order.Have(m.view.Spec, m.view.Status)
	}
}

// reclaim asks nodes for idle slots where pods of other nodes wait for addresses of subnets that have none: those with most idle slots
// there first. What already goes back there, or is there, is not asked for again. A node does without what it gave until there is room for it.
func (t *term) reclaim() {
	zones := map[string]bool{}
	for _, m := range t.lacking {
		if m.lacksRoom() || m.asksBack > 0 {
			zones[m.node.Zone] = true
		}
	}
	if t.reclaims = len(zones) > 0; !t.reclaims {
		clear(t.starved)
		return
	}
	now := t.now().Mono
	s := t.supplyIn(zones)
	for _, name := range slices.Sorted(maps.Keys(t.members)) {
		if m := t.members[name]; m.isKnown() && zones[m.node.Zone] {
			t.count(&s, m, now)
		}
	}
	for _, lack := range s.inOrder() {
		if missing := s.take(lack.in, lack.slots); missing > 0 {
			t.askIdle(&s, lack.in, missing, now)
		}
	}
	t.askNoMore(&s, now)
}

// count counts a node. One that does not answer is asked no more until its agent has written something, and one that the cluster does not reach
// is not asked at all.
func (t *term) count(s *supply, m *member, now time.Duration) {
	if m.view.Status.Mode != order.Operator {
		m.asksBack, m.asksIn = 0, nil // the status says so by its mode
	}
	if !m.hasAnswered() && m.askedAt == 0 { // an earlier leader asked
		m.askedAt = max(now, 1)
	}
	if !m.hasAnswered() && (m.node.Cut || now-m.askedAt >= answers) {
		m.asksBack, m.deaf = int(m.network.Spec.SeenReclaim), m.network.Generation
		t.dirty[m.network.Name] = true
	}
	if m.asksBack > 0 {
		s.deprived = append(s.deprived, m)
		for _, id := range m.askedIn() {
			if _, is := t.starved[id]; !is { // an earlier leader saw them starve
				t.starved[id] = now
			}
		}
	}
	if m.lacksRoom() {
		in := t.subnetsFor(m, now)
		s.lack(in, m.unserved())
		for _, id := range in {
			t.starved[id] = now
		}
	}
	s.addGoing(m)
	switch {
	case m.view.Status.Mode != order.Operator:
	case !m.hasAnswered():
		s.asked = append(s.asked, amount{m.askedIn(), m.asksBack - int(m.network.Spec.SeenReclaim)})
	case m.view.Spec.Waiting == 0 && m.network.Generation != m.deaf && !m.node.Cut:
		s.idle = append(s.idle, m)
	}
}

// askIdle asks the nodes with most idle slots in those subnets for what is missing.
func (t *term) askIdle(s *supply, in []string, missing int, now time.Duration) {
	var have []int
	for _, m := range s.idle {
		have = append(have, m.idleIn(in))
	}
	var others []*member
	for i, n := range placement.Reclaim(missing, have, spareSlots) {
		m := s.idle[i]
		if n = m.inBlocks(n, have[i]-spareSlots); n == 0 || missing <= 0 {
			others = append(others, m)
			continue
		}
		missing -= n // a prefix may be more than is asked of others
		m.asksBack, m.asksIn, m.askedAt = m.asksBack+n, m.namedOf(in), max(now, 1)
		t.dirty[m.network.Name] = true
	}
	s.idle = others // what it asks next a node is asked once it has answered
}

// inBlocks returns how many slots the node is asked for where n are missing and it has that many idle: of a node with prefixes those of whole ones.
func (m *member) inBlocks(n, most int) int {
	size := m.view.Status.Limits.V4Block.Size
	if size <= 1 || !slices.Contains(m.view.Spec.Families, eni.IPv4) {
		return n
	}
	return min((n+size-1)/size, most/size) * size
}

// askNoMore lets those nodes have back what they do without for whom there is room, the smallest parts first.
func (t *term) askNoMore(s *supply, now time.Duration) {
	slices.SortStableFunc(s.deprived, func(a, b *member) int { return cmp.Compare(a.doesWithout(), b.doesWithout()) })
	for _, m := range s.deprived {
		in := m.askedIn()
		starve := func(id string) bool { return now-t.starved[id] < calm }
		if slices.ContainsFunc(in, starve) || s.roomIn(in) < m.doesWithout() {
			continue
		}
		s.take(in, m.doesWithout())
		m.asksBack, m.asksIn = 0, nil
		t.dirty[m.network.Name] = true
	}
}
