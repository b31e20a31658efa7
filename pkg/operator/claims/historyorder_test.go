package claims_test

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
)

// reconcile writes a node's next status, or begins calls where it says all there is to say.
func (l *leader) reconcile(i int) {
	m, n := l.members[i], l.w.nodes[i]
	term := m.term.Copy()
	before := n.versions[m.seen]
	v := before
	for _, done := range m.deeds {
		v.Status = done(term, v)
	}
	ordered := v.Status
	if m.shown != nil && term.Knows(v, l.w.moment(), m.shown.Began) && lease.MayDescribe(m.shown.Began.Mono, l.acquired) {
		for _, is := range m.nics {
			if !slices.ContainsFunc(v.Status.ENIs, func(e order.ENI) bool { return e.ID == is.id }) {
				v.Status = term.Made(v, l.w.moment(), n.name, is.asENI())
			}
		}
		v.Status, _ = term.Described(v, l.w.moment(), *m.shown)
	}
	v.Status = l.keepFor(term, v, n.name, ordered)
	if !order.IsBehind(v) {
		v.Status, _ = term.Accept(v)
		if len(v.Status.Releasing) > 0 || term.Awaits(v) {
			v.Status, _ = term.Take(v)
		}
	}
	if v.Status.Revision != before.Status.Revision || v.Status.Epoch != before.Status.Epoch {
		if l.writeNode(m, n, v.Status) {
			m.term, m.deeds = term, nil
		}
		return
	}
	m.term, m.deeds = term, nil
	l.noteNode(i)
	l.beginCalls(i, v)
}

// keepFor returns the status with what is kept for pods.
func (l *leader) keepFor(term *order.Term, v order.View, node string, ordered order.Status) order.Status {
	orders, has := l.orders[node]
	kept := claims.Keep(v, ordered, claims.Basis{Orders: orders, Decided: has, Crosses: l.w.cross, Claimed: l.known.Claimed})
	switch {
	case l.w.off == nobodys && has:
		kept = orders.Reserved
	case l.w.off == nobodys:
		kept = v.Status.Reserved
	}
	next, _ := term.Reserve(v, kept, orders.Seize...)
	return next
}

// writeNode writes a status with the version that was read, and tells whether the leader knows that it has landed.
func (l *leader) writeNode(m *member, n *node, next order.Status) bool {
	w := l.w
	current := n.current()
	if m.seen != len(n.versions)-1 || !order.Follows(current.Status, next) {
		m.seen = len(n.versions) - 1
		return false
	}
	luck := w.IntN(25)
	if luck == 0 && !w.well {
		return false
	}
	w.put(n, order.View{Spec: current.Spec, Status: next})
	if w.traces {
		w.note("status written", "%s by %d: reserved %v, releasing %v, quarantined %v, %v", n.name, l.epoch, next.Reserved, next.Releasing, next.Quarantined, addressesOf(next))
	}
	if luck == 1 && !w.well {
		return false
	}
	m.seen = len(n.versions) - 1
	return true
}

func addressesOf(s order.Status) (list []netip.Prefix) {
	for _, e := range s.ENIs {
		list = append(list, e.Addresses...)
	}
	return list
}

func published(s order.Spec, at netip.Addr) bool {
	return slices.Contains(s.Release, netip.PrefixFrom(at, at.BitLen()))
}

// beginCalls begins the calls of a node whose object says all before.
func (l *leader) beginCalls(i int, v order.View) {
	m, n, orders := l.members[i], l.w.nodes[i], l.orders[l.w.nodes[i].name]
	if !lease.MayCall(l.w.now, l.renewed, callTimeout) {
		return
	}
	for _, e := range v.Status.ENIs {
		if _, unsure := m.unsure[e.ID]; unsure || m.jobs[e.ID] != nil {
			continue
		}
		take := m.term.Takeable(v, e.ID, orders.Take[e.ID])
		if l.w.off == withdraw {
			take = asPrefixes(orders.Take[e.ID])
		}
		for _, p := range take {
			l.w.checkTaken(l, n, p.Addr())
		}
		for _, p := range m.term.Unassignable(v)[e.ID] {
			if !l.known.IsKept(p.Addr()) && !slices.Contains(take, p) {
				take = append(take, p)
			}
		}
		if len(take) > 0 {
			m.term.Asked(v.Status, take...)
			l.begin(i, &call{eni: e.ID, take: take})
		} else if bring := inOneSubnet(e.Subnet, bringable(v.Status, orders.Assign[e.ID])); len(bring) > 0 && !l.cut[n.name] {
			l.begin(i, &call{eni: e.ID, bring: bring})
		}
	}
	if nic := orders.Make; nic.Subnet != "" && nic.Serial == v.Status.Created && !l.cut[n.name] && m.jobs[""] == nil {
		l.begin(i, &call{nic: nic, token: order.Token(n.name, v.Status.Created)})
	}
}

// bringable returns those of the addresses that the status keeps for pods and has on no ENI.
func bringable(s order.Status, addrs []netip.Addr) (list []netip.Addr) {
	has := addressesOf(s)
	for _, a := range addrs {
		kept := slices.ContainsFunc(s.Reserved, func(r order.Reserved) bool { return r.Addr == a && r.Pod != "" })
		if kept && !slices.Contains(has, netip.PrefixFrom(a, a.BitLen())) {
			list = append(list, a)
		}
	}
	return list
}

// inOneSubnet returns those of the addresses that are of one subnet: of the ENI's, if any is.
func inOneSubnet(own string, addrs []netip.Addr) []netip.Addr {
	if len(addrs) == 0 {
		return nil
	}
	if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return subnetOfAddr(a) == own }) {
		own = subnetOfAddr(addrs[0])
	}
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return subnetOfAddr(a) != own })
}

// begin sends a call.
func (l *leader) begin(i int, c *call) {
	m := l.members[i]
	c.by, c.node, c.sent = l, i, l.w.now
	m.jobs[c.eni] = c
	for _, p := range c.take {
		m.open[p.Addr()] = true
	}
	for _, a := range c.bring {
		m.open[a] = true
	}
	l.known.SetOpen(l.w.nodes[i].name, maps.Clone(m.open))
	l.w.calls = append(l.w.calls, c)
}

// endCall takes in how a call has ended.
func (l *leader) endCall(c *call, err error) {
	m, w := l.members[c.node], l.w
	delete(m.jobs, c.eni)
	if err == errLost {
		m.unsure[c.eni] = w.now
		return
	}
	switch {
	case len(c.take) > 0:
		m.deeds = append(m.deeds, func(t *order.Term, v order.View) order.Status {
			t.Answered(c.take...)
			return t.Unassigned(v, w.moment(), c.take...)
		})
	case len(c.bring) > 0 && err == nil:
		m.deeds = append(m.deeds, func(t *order.Term, v order.View) order.Status {
			return t.Assigned(v, w.moment(), c.eni, asPrefixes(c.bring)...)
		})
	case err == errCross:
		l.noCrossTo = w.now + time.Minute
	case len(c.bring) > 0 && err == errTaken:
		for _, a := range c.bring {
			l.known.NoteRefused(a, w.wall(), "")
		}
	case err == nil:
		made := c.made.asENI()
		m.deeds = append(m.deeds, func(t *order.Term, v order.View) order.Status {
			return t.Made(v, w.moment(), w.nodes[c.node].name, made)
		})
	}
}

// Rules that a history can leave out.
const (
	first    = "a claim is written before a call"
	withdraw = "an address is withdrawn before it is taken"
	grace    = "an agent has the time to end with an address"
	uids     = "an address is one pod's, and not that of any pod of its name"
	nobodys  = "what shows up and has a claim is nobody's"
	ends     = "a claim ends with its StatefulSet"
	again    = "a gate is decided again when claims have ended"
)
