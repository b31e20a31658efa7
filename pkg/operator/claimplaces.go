package operator

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
)

// A place on an ENI changes hands from the pool to a pod of a topology as slots do between nodes: the agent is asked for an idle one, publishes it, and
// once it is gone the topology's address comes. Meanwhile the place is promised.

// factsOf returns what a plan of a node goes by besides its object.
func (t *term) factsOf(m *member, view order.View, now order.Moment) order.Facts {
	return t.promise(m, view, m.planFacts(t.poolSubnets(m, now.Mono), now.Mono), now.Mono)
}

// promise adds which places on ENIs are for pods of topologies: of calls that are to bring them an address, and of idle addresses that leave for one,
// wherever in the subnet they leave first.
func (t *term) promise(m *member, view order.View, facts order.Facts, now time.Duration) order.Facts {
	c := t.claiming
	if c == nil {
		return facts
	}
	facts.WholeENIs = t.whyNoCross(m, now) != "" || !t.o.Region.Does().CrossSubnet
	orders := c.orders[m.node.Name]
	for _, e := range view.Status.ENIs {
		n := orders.Promised[e.ID] + orders.Yield[e.Subnet]
		if j := m.jobs[e.ID]; j != nil {
			n += placesOf(j.bring)
		}
		if n > 0 {
			call := facts.Calls[e.ID]
			call.Promised = n
			facts.Calls[e.ID] = call
		}
	}
	return facts
}

// placesOf returns how many places addresses take: one of each family shares one.
func placesOf(addrs []netip.Addr) (most int) {
	count := map[eni.Family]int{}
	for _, a := range addrs {
		f := eni.FamilyOf(a)
		count[f]++
		most = max(most, count[f])
	}
	return most
}

// yields returns how many places idle slots could leave, or are leaving, by the subnet of their ENI.
func (m *member) yields() map[string]int {
	var by map[string]int
	for _, id := range m.ownSubnets() {
		if n := m.leavingIn(id) + m.askedFor(id) + m.couldYield(id); n > 0 {
			if by == nil {
				by = map[string]int{}
			}
			by[id] = n
		}
	}
	return by
}

// slotsPerPlace returns how many slots leave a place: those of a whole prefix, where addresses come in prefixes.
func (m *member) slotsPerPlace() int {
	if !slices.Contains(m.view.Spec.Families, eni.IPv4) {
		return 1
	}
	return max(1, m.view.Status.Limits.V4Block.Size)
}

// couldYield returns how many places the node could be asked for in a subnet.
func (m *member) couldYield(subnet string) int {
	if !m.hasAnswered() || m.node.Cut || m.view.Spec.Waiting > 0 || m.network.Generation == m.deaf {
		return 0
	}
	return max(0, m.idleIn([]string{subnet})-spareSlots) / m.slotsPerPlace()
}

// askedFor returns how many places the node is asked for there and has not answered yet.
func (m *member) askedFor(subnet string) int {
	if m.hasAnswered() || !slices.Contains(m.askedIn(), subnet) {
		return 0
	}
	return (m.asksBack - int(m.network.Spec.SeenReclaim)) / m.slotsPerPlace()
}

// leavingIn returns how many places on ENIs for pods there are being left.
func (m *member) leavingIn(subnet string) (n int) {
	v := m.view
	if len(v.Status.Releasing)+len(v.Spec.Release) == 0 {
		return 0 // nearly always
	}
	going := map[netip.Addr]bool{}
	for _, a := range order.Addresses(v.Status.Limits, slices.Concat(v.Status.Releasing, order.Acceptable(v.Spec, v.Status))...) {
		going[a] = true
	}
	for _, e := range v.Status.ENIs {
		if !m.servesPods(e) || e.Subnet != subnet {
			continue
		}
		var leave []netip.Addr // the first one of each prefix
		for _, p := range e.Addresses {
			all := order.Addresses(v.Status.Limits, p)
			if len(all) > 0 && !slices.ContainsFunc(all, func(a netip.Addr) bool { return !going[a] }) {
				leave = append(leave, all[0])
			}
		}
		n += placesOf(leave)
	}
	return n
}

// askPlaces asks the agents of full nodes for the places that pods of topologies wait for.
func (t *term) askPlaces(now time.Duration) {
	for name, orders := range t.claiming.orders {
		m := t.members[name]
		if len(orders.Yield) == 0 || m == nil || !m.isReady() || m.isGoing() {
			continue // nearly always
		}
		for _, id := range slices.Sorted(maps.Keys(orders.Yield)) {
			missing := orders.Yield[id] - m.leavingIn(id) - m.askedFor(id)
			if n := min(missing, m.couldYield(id)); n > 0 {
				m.asksBack, m.asksIn, m.askedAt = m.asksBack+n*m.slotsPerPlace(), []string{id}, max(now, 1)
				t.dirty[name] = true
			}
		}
	}
}

// placesOn returns how many addresses or prefixes of a family an ENI carries. Of IPv6 the limits know of the one prefix that an ENI needs: the cloud
// takes as many addresses beside it as of IPv4.
func placesOn(l eni.Limits, f eni.Family) int {
	if f == eni.IPv6 && l.V6Block.Size > 1 {
		f = eni.IPv4
	}
	return l.PerENI(f) / max(1, l.Block(f).Size)
}

// owedPlaces returns, by subnet, how many slots the node lacks since addresses of topologies have their places: it has each ENI that it can have, and
// those are full. When one of those addresses goes the node is to have its slot again, whoever else waits there.
func (m *member) owedPlaces() map[string]int {
	if !m.isKnown() || len(m.view.Status.Reserved) == 0 || len(m.view.Spec.Families) == 0 {
		return nil // nearly always
	}
	spec, status := m.view.Spec, m.view.Status
	lacks, attached := spec.Slots-order.Have(spec, status), 0
	if m.shown != nil {
		attached = m.shown.countOthers(status)
	}
	for _, e := range status.ENIs {
		if e.State == order.Attached {
			attached++
		}
	}
	if lacks <= 0 || attached < status.Limits.ENIs {
		return nil
	}
	owed := map[string]int{}
	for _, e := range status.ENIs {
		on := order.Addresses(status.Limits, e.Addresses...)
		if !m.servesPods(e) || len(on) < spec.Pool.Within(status.Limits).PerENI(spec.Families[0]) {
			continue
		}
		for _, r := range status.Reserved {
			if lacks > 0 && eni.FamilyOf(r.Addr) == spec.Families[0] && slices.Contains(on, r.Addr) {
				owed[e.Subnet], lacks = owed[e.Subnet]+1, lacks-1
			}
		}
	}
	return owed
}
