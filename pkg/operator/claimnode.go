package operator

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/quota"
)

// noteClaimNode keeps for topologies how a node is, once its object says all that came of calls.
func (t *term) noteClaimNode(name string, m *member) {
	c := t.claiming
	switch {
	case c == nil:
		return
	case m == nil || m.network == nil || m.wrong != nil:
		c.known.DropNode(name)
		c.changed = c.changed || len(c.open[name]) > 0
		delete(c.open, name)
		return
	case m.writing || len(m.deeds) > 0 || m.unsaid:
		return // until then what is known of it stays: else an address that a describe shows there would count as nowhere
	}
	if len(m.jobs) == 0 && len(m.unsure) == 0 {
		delete(c.open, name)
	}
	if is := t.claimNode(m); c.known.SetNode(is) {
		c.changed = true
	}
}

// hasSameAddresses tells whether two statuses have the same addresses on the same ENIs.
func hasSameAddresses(a, b order.Status) bool {
	return slices.EqualFunc(a.ENIs, b.ENIs, func(x, y order.ENI) bool {
		return x.ID == y.ID && x.State == y.State && slices.Equal(x.Addresses, y.Addresses)
	})
}

// claimNode returns a node as topologies go by it.
func (t *term) claimNode(m *member) claims.Node {
	now, status := t.now().Mono, m.view.Status
	n := claims.Node{Name: m.network.Name, Zone: m.node.Zone, Created: status.Created, Gone: m.node.Cut, Reserved: status.Reserved, Releasing: map[netip.Addr]bool{}, Published: map[netip.Addr]bool{}, Quarantined: map[netip.Addr]bool{},
		Open: maps.Clone(t.claiming.open[m.network.Name])}
	described := m.shown != nil && m.term.Lease.MayDescribe(m.shown.began.Mono, m.term.Acquired) && status.Epoch <= t.epoch && !order.IsBehind(m.view)
	n.Told = described && m.shown.view.Err == nil
	n.Serves = m.isReady() && status.Mode == order.Operator && !m.isGoing() && !m.node.Cut
	if described && m.node.Cut && errors.Is(m.shown.view.Err, cloud.ErrNotFound) {
		n.Told = true // the instance has no ENI any more: none has an address
		return n
	}
	for _, a := range order.Addresses(status.Limits, status.Releasing...) {
		n.Releasing[a] = true
	}
	for _, a := range order.Addresses(status.Limits, m.view.Spec.Release...) {
		n.Published[a] = m.term.Heard(m.view.Spec)
	}
	for _, q := range status.Quarantined {
		for _, a := range order.Addresses(status.Limits, q.Prefix) {
			n.Quarantined[a] = true
		}
	}
	attached := 0
	for _, e := range status.ENIs {
		if e.State == order.Creating || e.State == order.Detached {
			continue
		}
		attached++
		n.ENIs = append(n.ENIs, m.claimENI(e, now))
	}
	if m.shown != nil {
		attached += m.shown.countOthers(status)
	}
	n.NoCross = t.whyNoCross(m, now)
	n.Crosses = t.o.Region.Does().CrossSubnet && n.NoCross == ""
	n.Places = m.view.Spec.Pool.TopologyPlaces
	if n.Full = attached >= status.Limits.ENIs && m.jobs[""] == nil; n.Full && n.Serves {
		n.Yields = m.yields()
	}
	n.MayMake = n.Serves && attached < status.Limits.ENIs && m.noNew.Next <= now && !m.node.Cut
	for key, p := range m.pauses {
		n.MayMake = n.MayMake && (key.do != pool.Create || p.until <= now)
	}
	return n
}

// claimENI returns an ENI with the room that it has.
func (m *member) claimENI(e order.ENI, now time.Duration) claims.ENI {
	status := m.view.Status
	is := claims.ENI{ID: e.ID, Subnet: e.Subnet, Addresses: order.Addresses(status.Limits, e.Addresses...), Room: map[eni.Family]int{}}
	for _, net := range []eni.Net{e.V4, e.V6} {
		if net.Primary.IsValid() {
			is.Primaries = append(is.Primaries, net.Primary.Addr())
		}
	}
	units := map[eni.Family]int{}
	for _, p := range e.Addresses {
		units[eni.FamilyOf(p.Addr())]++
		if !p.IsSingleIP() {
			is.Blocks = append(is.Blocks, p)
		}
	}
	_, unsure := m.unsure[e.ID]
	if e.State != order.Attached || e.Index < m.view.Spec.Pool.FirstIndex(status.Limits) || unsure || m.noMore[e.ID].Next > now ||
		slices.Contains(status.LeavingInterfaces, e.ID) || slices.Contains(m.view.Spec.NoLink, e.ID) || slices.Contains(m.view.Spec.ReleaseInterfaces, e.ID) {
		return is
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		is.Room[f] = max(0, placesOn(m.view.Spec.Pool.Within(status.Limits), f)-units[f])
	}
	return is
}

// claimSteps returns the calls that bring addresses of topologies to a node and take them. Its object says before for whom they are, and
// what is accepted.
func (t *term) claimSteps(node *member, view order.View) (list []planned) {
	c := t.claiming
	if c == nil || view.Status.Mode != order.Operator || node.isGoing() {
		return nil
	}
	name := node.network.Name
	orders := c.orders[name]
	place := func(action, id string) quota.Request {
		return quota.Request{Node: name, Action: action, Object: id, Class: quota.Starving, Since: c.last}
	}
	for _, e := range view.Status.ENIs {
		step := pool.Step{ENI: e.ID, Index: e.Index, Subnet: e.Subnet, Family: eni.IPv4}
		if take := node.term.Takeable(view, e.ID, orders.Take[e.ID]); len(take) > 0 {
			step.Do = pool.Release
			take, step.Subnet = t.takenFrom(e.Subnet, take)
			list = append(list, planned{Step: step, Request: place(t.action("Unassign", e.Index), e.ID), exact: exact{take: take, cross: step.Subnet != e.Subnet}})
		} else if bring := bringable(view.Status, orders.Assign[e.ID]); len(bring) > 0 && e.State == order.Attached && !node.node.Cut {
			action := t.action("Assign", e.Index)
			if bring, step.Subnet = t.inOneSubnet(e.Subnet, bring); step.Subnet != e.Subnet {
				if t.whyNoCross(node, t.now().Mono) != "" {
					continue // what was decided before that is decided again
				}
				action = t.action("Assign.Cross", e.Index)
			}
			step.Do, step.Count = pool.Assign, len(bring)
			list = append(list, planned{Step: step, Request: place(action, e.ID), exact: exact{bring: bring, cross: step.Subnet != e.Subnet}})
		} else if from := orders.Move[e.ID]; e.State == order.Attached && !node.node.Cut {
			if bring := t.movable(view.Status, from); len(bring) > 0 {
				step.Do, step.Subnet = pool.Assign, "" // the subnet has as many left as before
				list = append(list, planned{Step: step, Request: place(t.action("Assign", e.Index), e.ID), exact: exact{bring: bring, from: from}})
			}
		}
	}
	if nic := orders.Make; nic.Subnet != "" && nic.Serial == view.Status.Created && !node.node.Cut {
		list = append(list, planned{Step: pool.Step{Do: pool.Create, Subnet: nic.Subnet, Index: -1}, Request: place(t.action("Create", -1), ""),
			token: order.Token(string(node.network.UID), view.Status.Created), exact: exact{topology: nic.Topology}})
	}
	return list
}

// exact is what a call is about that is for pods of topologies.
type exact struct {
	bring    []netip.Addr // that an ENI is to get, and no others
	from     claims.Move  // the ENI of another node that loses them by that, the zero Move for none
	take     []netip.Prefix
	topology string // whose a new ENI is
	cross    bool   // what it brings or takes is of another subnet than the ENI's
}

// bringable returns those of the addresses that the status keeps for pods, or for the next ones of a topology, and has on no ENI.
func bringable(s order.Status, addrs []netip.Addr) (list []netip.Addr) {
	for _, a := range addrs {
		kept := slices.ContainsFunc(s.Reserved, func(r order.Reserved) bool { return r.Addr == a && (r.Pod != "" || r.Topology != "") })
		there := slices.ContainsFunc(s.ENIs, func(e order.ENI) bool { return slices.Contains(e.Addresses, netip.PrefixFrom(a, a.BitLen())) })
		if kept && !there {
			list = append(list, a)
		}
	}
	return list
}

// withoutKept returns those of the prefixes of which no claim says when they go back.
func (t *term) withoutKept(of order.Status, list []netip.Prefix) []netip.Prefix {
	if t.claiming == nil {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool {
		return slices.ContainsFunc(order.Addresses(of.Limits, p), t.claiming.known.IsKept)
	})
}

// beginExact notes that a call is under way that is about addresses.
func (t *term) beginExact(j *job) {
	c := t.claiming
	if c == nil {
		return
	}
	if j.from.ENI != "" {
		c.known.NoteMoving(j.bring)
	}
	of := j.Request.Node
	for _, a := range append(order.Addresses(j.member.view.Status.Limits, j.prefixes...), j.bring...) {
		if c.open[of] == nil {
			c.open[of] = map[netip.Addr]bool{}
		}
		c.open[of][a] = true
	}
	if c.known.SetOpen(of, maps.Clone(c.open[of])) {
		c.changed = true
	}
}

// isOfAddresses tells whether a call was refused for the addresses that it named.
func isOfAddresses(err error) bool {
	return errors.Is(err, cloud.ErrTaken) || errors.Is(err, cloud.ErrForbidden)
}

// endExact takes in how a call has ended that was to bring addresses.
func (t *term) endExact(j *job, out outcome, now order.Moment) {
	if t.claiming == nil || len(j.bring) == 0 {
		return
	}
	t.claiming.changed = true
	if j.from.ENI != "" {
		t.endMove(j, out, now)
		return
	}
	if j.isUncrossed(out.err) {
		t.noteNoCross(j, out.err, now.Mono)
		return
	}
	if isOfAddresses(out.err) {
		t.o.Log.Warn("the cloud does not give a node addresses of topologies; it is asked again in a while", "node", j.Node, "eni", j.ENI, "addresses", j.bring, "error", out.err)
		why := ""
		if !errors.Is(out.err, cloud.ErrTaken) {
			why = Shorten(out.err.Error())
		}
		for _, a := range j.bring {
			if !slices.Contains(out.addrs, a) {
				t.claiming.known.NoteRefused(a, now.Wall, why)
			}
		}
		if errors.Is(out.err, cloud.ErrTaken) {
			t.seek(slices.DeleteFunc(slices.Clone(j.bring), func(a netip.Addr) bool { return slices.Contains(out.addrs, a) }))
		}
	}
}
