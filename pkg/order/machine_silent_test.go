package order

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// hear has the agent write what goes back with the leader that it has read of (S9).
func (m *machine) hear(i int) {
	a := &m.nodes[i].agent
	v := m.nodes[i].versions[a.seen]
	if v.Spec.Boot != a.boot {
		m.publish(i)
		return
	}
	m.send(i, Hear(v, Publish(a.state, v)), nil)
}

// endObject has the operator end a node's object that somebody deletes, once no call about it can have an effect any more. Its agent makes it again, with
// what the node cache has seen, and this operator has seen the object before end.
func (m *machine) endObject(op, i int) {
	o, n := m.ops[op], m.nodes[i]
	t, v := o.terms[i], m.view(op, i)
	if t == nil || o.seen[i] != len(n.versions)-1 || !t.Led(v.Status) {
		return
	}
	// A call that nobody has answered in time is under way no more for who sent it.
	busy := slices.ContainsFunc(m.calls, func(c *call) bool { return c.term == t && m.now < c.sent+timeout })
	silent := t.IsSilent(v.Spec, m.moment()) && !busy || m.without("silence") || m.without("silence own") && m.now >= t.Acquired+lease.Fence && !busy
	if len(v.Status.Releasing) > 0 && !silent {
		return
	}
	if slices.ContainsFunc(v.Status.Quarantined, func(q Quarantined) bool { return t.QuarantineEnds(q, m.moment()) > m.now }) {
		return
	}
	made, _ := machineENI(n.id)
	next := View{Spec{Mode: Operator, Families: []eni.Family{eni.IPv4}, Boot: n.agent.boot}, Status{Mode: Operator, Limits: v.Status.Limits, ENIs: []ENI{made}}}
	next.Spec = Seen(n.agent.state, next, n.agent.head)
	n.versions = append(n.versions, next)
	n.born, n.agent.seen = len(n.versions)-1, len(n.versions)-1
	m.watch(op, i, n.born)
	o.terms[i].Follow(v.Status.Revision, m.now)
}

// follow gives an operator that sees another object of the node than before what it knows of a new one.
func (o *operator) follow(i int) {
	if t := o.terms[i]; t != nil {
		o.terms[i], o.shown[i] = NewTerm(t.Lease, t.Epoch, t.Acquired), nil
	}
}
