package operator

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
)

// amount is a number of slots in any of some subnets, whose ids are sorted.
type amount struct {
	in    []string
	slots int
}

// supply is what the subnets of zones have, what the pods there lack, and who has something that they could have.
type supply struct {
	room     map[string]int // by subnet: addresses that it has, or that are going back to it
	asked    []amount       // what nodes are asked for and have not answered yet
	lacking  map[string]amount
	idle     []*member
	deprived []*member // nodes that do without something
}

// supplyIn returns what the subnets of the zones have left: what the cloud refused since the last describe says more than that.
func (t *term) supplyIn(zones map[string]bool) supply {
	s := supply{room: map[string]int{}, lacking: map[string]amount{}}
	for id, n := range t.subnets {
		if zones[n.place.Zone] && n.isDescribed() {
			s.room[id] = max(0, n.placed(t.tally.targetsIn(id), n.wasEmpty()).Room())
		}
	}
	return s
}

// lack notes slots that pods wait for and that those subnets could give them.
func (s *supply) lack(in []string, slots int) {
	key := ""
	for _, id := range in {
		key += id + " "
	}
	s.lacking[key] = amount{in, s.lacking[key].slots + slots}
}

// inOrder returns what pods lack: first what few subnets can give, since others could take from more.
func (s *supply) inOrder() []amount {
	return slices.SortedFunc(maps.Values(s.lacking), func(a, b amount) int {
		return cmp.Or(cmp.Compare(len(a.in), len(b.in)), slices.Compare(a.in, b.in))
	})
}

// take takes slots of what the subnets have and of what is asked for there, and returns how many are missing.
func (s *supply) take(in []string, slots int) (missing int) {
	for _, id := range in {
		n := min(slots, s.room[id])
		s.room[id], slots = s.room[id]-n, slots-n
	}
	for i := range s.asked {
		if a := &s.asked[i]; slices.ContainsFunc(a.in, func(id string) bool { return slices.Contains(in, id) }) {
			n := min(slots, a.slots)
			a.slots, slots = a.slots-n, slots-n
		}
	}
	return slots
}

// roomIn returns how many addresses the subnets have together.
func (s *supply) roomIn(in []string) (sum int) {
	for _, id := range in {
		sum += s.room[id]
	}
	return sum
}

// addGoing adds what the node releases to what its subnets have.
func (s *supply) addGoing(m *member) {
	v := m.view
	going := order.Addresses(v.Status.Limits, append(slices.Clone(v.Status.Releasing), order.Acceptable(v.Spec, v.Status)...)...)
	if len(going) == 0 {
		return // nearly always
	}
	for _, e := range v.Status.ENIs {
		for _, addr := range order.Addresses(v.Status.Limits, e.Addresses...) {
			if _, known := s.room[e.Subnet]; known && slices.Contains(going, addr) {
				s.room[e.Subnet]++
			}
		}
	}
}

// subnetsFor returns the subnets whose addresses pods of the node can get: those of its ENIs that are not full, and if it may have another
// ENI, those that take one.
func (t *term) subnetsFor(m *member, now time.Duration) (ids []string) {
	v := m.view
	limits := v.Spec.Pool.Within(v.Status.Limits)
	for _, e := range v.Status.ENIs {
		has := order.Addresses(v.Status.Limits, e.Addresses...)
		full := func(f eni.Family) bool {
			return len(slices.DeleteFunc(slices.Clone(has), func(a netip.Addr) bool { return eni.FamilyOf(a) != f })) >= limits.PerENI(f)
		}
		if m.servesPods(e) && !slices.ContainsFunc(v.Spec.Families, full) {
			ids = append(ids, e.Subnet)
		}
	}
	if v.Spec.Pool.Full(order.Snapshot(v.Spec, v.Status, t.promise(m, v, m.planFacts(nil, now), now))) == "" {
		for id, s := range t.subnets {
			p := s.forPlacement(t.tally.targetsIn(id))
			if p.State == placement.Full {
				p.State = placement.Ready // it has room again once it is given some
			}
			if s.isDescribed() && p.For(placement.Node{Zone: m.node.Zone, Labels: m.node.Labels}, now) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// servesPods tells whether pods without a topology get addresses of the ENI.
func (m *member) servesPods(e order.ENI) bool {
	return e.State == order.Attached && e.Topology == "" && e.Index >= m.view.Spec.Pool.FirstIndex(m.view.Status.Limits)
}

// ownSubnets returns the subnets in which the node has addresses for pods.
func (m *member) ownSubnets() (ids []string) {
	for _, e := range m.view.Status.ENIs {
		if m.servesPods(e) && len(e.Addresses) > 0 {
			ids = append(ids, e.Subnet)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// mostNamed is how many subnets an object names, by its schema.
const mostNamed = 64

// namedOf returns of subnets those that the node's object names where it is asked for slots there: of more than that first those in which it has
// some.
func (m *member) namedOf(in []string) []string {
	if len(in) <= mostNamed {
		return in
	}
	own := m.ownSubnets()
	elsewhere := func(id string) int {
		if slices.Contains(own, id) {
			return 0
		}
		return 1
	}
	named := slices.Clone(in)
	slices.SortStableFunc(named, func(a, b string) int { return cmp.Compare(elsewhere(a), elsewhere(b)) })
	named = named[:mostNamed]
	slices.Sort(named)
	return named
}

// askedIn returns the subnets in which the node does without something: an earlier release asked for slots wherever they are.
func (m *member) askedIn() []string {
	if len(m.asksIn) > 0 {
		return m.asksIn
	}
	return m.ownSubnets()
}

// idleIn returns how many slots the node could do without in those subnets, but for the one that it keeps, which may be elsewhere. An agent
// tells where they are if its node has addresses in several subnets.
func (m *member) idleIn(in []string) int {
	all, there := int(m.network.Spec.IdleSlots), 0
	elsewhere := func(id string) bool { return !slices.Contains(in, id) }
	if !slices.ContainsFunc(m.ownSubnets(), elsewhere) {
		return all
	}
	for _, id := range in {
		there += int(m.network.Spec.IdleIn[id])
	}
	if there == 0 {
		return 0
	}
	return min(all, there+spareSlots)
}
