package order

import (
	"net/netip"
	"slices"
	"time"
)

func (m *machine) moment() Moment { return Moment{Mono: m.now, Wall: time.Unix(0, 0).Add(m.now)} }

// takeOver makes the operator the leader, once the lease of the other has run out. The other may not know.
func (m *machine) takeOver(op int) {
	if m.epoch > 1 && (op == m.lead || m.now < m.ops[m.lead].renewed+lease.Duration) {
		return
	}
	o := m.ops[op]
	var epochs []int64
	for _, n := range m.nodes {
		epochs = append(epochs, n.current().Status.Epoch)
	}
	m.lead, m.epoch = op, NextEpoch(m.epoch, epochs...)
	o.renewed = m.now
	l := lease
	if m.without("S8") {
		l.Settle = 0
	}
	for i, n := range m.nodes {
		o.terms[i], o.seen[i], o.shown[i] = NewTerm(l, m.epoch, m.now), len(n.versions)-1, nil
	}
}

func (m *machine) renew() { m.ops[m.lead].renewed = m.now }

// mayCall is S6 for one operator, a leader or one that takes itself for it.
func (m *machine) mayCall(op int) bool {
	return m.without("S6") || lease.MayCall(m.now, m.ops[op].renewed, timeout)
}

// watch gives the operator a newer version of a node's object.
func (m *machine) watch(op, i, version int) {
	if o := m.ops[op]; version > o.seen[i] && version < len(m.nodes[i].versions) {
		if born := m.nodes[i].born; o.seen[i] < born && version >= born {
			o.follow(i)
		}
		o.seen[i] = version
	}
}

func (m *machine) view(op, i int) View { return m.nodes[i].versions[m.ops[op].seen[i]] }

// write puts a status: with the version that it was decided from (S2), and as the API server allows. It tells whether it was put.
func (m *machine) write(op, i int, next Status) bool {
	n, o := m.nodes[i], m.ops[op]
	fresh := o.seen[i] == len(n.versions)-1
	old := n.current().Status
	if !fresh && m.without("S2") {
		next.Revision = max(next.Revision, old.Revision+1)
		fresh = true
	}
	if !fresh || !Follows(old, next) {
		return false
	}
	n.versions = append(n.versions, View{n.current().Spec, next})
	o.seen[i] = len(n.versions) - 1
	return true
}

func (m *machine) accept(op, i int) {
	if t := m.ops[op].terms[i]; t != nil {
		if next, is := t.Accept(m.view(op, i)); is {
			m.write(op, i, next)
		} else if next, is := t.Take(m.view(op, i)); is && t.Awaits(m.view(op, i)) {
			m.write(op, i, next)
		}
	}
}

// unassign has the operator send a call for what is accepted. Without S3, for what is asked for.
func (m *machine) unassign(op, i int, p netip.Prefix) {
	t := m.ops[op].terms[i]
	if t == nil || !m.mayCall(op) {
		return
	}
	if next, is := t.Take(m.view(op, i)); is && !m.without("take") {
		m.write(op, i, next)
	}
	v := m.view(op, i)
	if m.without("take") {
		v.Status.Epoch = t.Epoch
	}
	if m.without("S9") || m.without("S2") || m.without("take") { // what those two stop it stops as well
		v.Spec.SeenEpoch = 0
	}
	may := t.Unassignable(v)[m.nodes[i].id]
	if m.without("S3") {
		may = Acceptable(v.Spec, v.Status)
	}
	if !slices.Contains(may, p) {
		return
	}
	t.Asked(v.Status, p)
	m.calls = append(m.calls, &call{op: op, node: i, term: t, addr: p, sent: m.now})
}

// effect lets the cloud do a call. It takes the address off the ENI that the call names, or finds it elsewhere.
func (m *machine) effect(c *call, answered bool) {
	if m.cloud[c.addr].eni == m.nodes[c.node].id {
		m.move(c.addr, "")
	}
	c.done = true
	if !answered {
		m.calls = slices.DeleteFunc(m.calls, func(o *call) bool { return o == c })
	}
}

// answer has the operator write down that an address has gone.
func (m *machine) answer(c *call) {
	if m.ops[c.op].terms[c.node] != c.term {
		m.calls = slices.DeleteFunc(m.calls, func(o *call) bool { return o == c })
		return // of an earlier term of it
	}
	c.term.Answered(c.addr)
	m.forget(c.term)
	if m.write(c.op, c.node, c.term.Unassigned(m.view(c.op, c.node), m.moment(), c.addr)) {
		m.calls = slices.DeleteFunc(m.calls, func(o *call) bool { return o == c })
	} else {
		c.term.doubts[c.addr]++ // it is answered again, of a newer copy
	}
}

// forget is S7 left out.
func (m *machine) forget(t *Term) {
	if m.without("S7") {
		clear(t.doubts)
	}
}

// assign has the leader assign an address that is nobody's. It may crash before it writes that down.
func (m *machine) assign(i int, p netip.Prefix, written bool) {
	t := m.ops[m.lead].terms[i]
	if m.cloud[p].eni != "" || !m.mayCall(m.lead) {
		return
	}
	m.move(p, m.nodes[i].id)
	if written {
		m.write(m.lead, i, t.Assigned(m.view(m.lead, i), m.moment(), m.nodes[i].id, p))
	}
}

// describe has the operator ask what is there. For settle after a change the answer may be of before, as old says.
func (m *machine) describe(op, i int, old func(netip.Prefix) bool) {
	d := &Description{Began: m.moment(), Shown: map[string][]netip.Prefix{}}
	id := m.nodes[i].id
	d.Shown[id] = nil
	for _, p := range m.list() {
		at := m.cloud[p]
		shown := at.eni
		if m.now < at.changed+lease.Settle && old(p) {
			shown = at.before
		}
		if shown == id {
			d.Shown[id] = append(d.Shown[id], p)
		}
	}
	m.ops[op].shown[i] = d
}

// learn has the operator write down what its describe showed.
func (m *machine) learn(op, i int) {
	o := m.ops[op]
	if o.terms[i] == nil || o.shown[i] == nil {
		return
	}
	m.forget(o.terms[i])
	d := *o.shown[i]
	if m.without("S7 ended") {
		d.Began.Wall = m.moment().Wall // as if time alone ended it
		clear(o.terms[i].fences)
	}
	if next, is := o.terms[i].Described(m.view(op, i), m.moment(), d); is && m.write(op, i, next) {
		o.shown[i] = nil
	}
}
