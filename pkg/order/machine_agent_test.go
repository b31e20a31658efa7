package order

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// addPod lets a pod have an address of the node, if any is free.
func (m *machine) addPod(i int) {
	m.pods++
	owner := eni.Owner{Key: eni.Key{Network: "net", Container: fmt.Sprint("pod-", m.pods), IfName: "eth0"}}
	m.nodes[i].agent.state.AssignPod(owner, "", m.now)
}

// endPods ends every pod of the node whose address says so. There is no cooldown.
func (m *machine) endPods(i int, which func(netip.Addr) bool) {
	m.nodes[i].agent.state.FreeIf(func(a eni.Address) bool { return which(a.Addr) }, m.now)
}

// drain makes free addresses releasing: the first half of S1.
func (m *machine) drain(i int, p netip.Prefix) {
	state := m.nodes[i].agent.state
	addrs := Addresses(eni.Limits{}, p)
	for _, a := range state.Addresses {
		if _, free := state.FreeSince(&a, m.now); slices.Contains(addrs, a.Addr) && !free {
			return
		}
	}
	state.StartRelease(addrs, m.now)
}

// see gives the agent a newer version, if there is one, and lets it adopt that.
func (m *machine) see(i, version int) {
	n := m.nodes[i]
	if version > n.agent.seen && version < len(n.versions) {
		n.agent.seen = version
		m.adopt(i)
	}
}

func (m *machine) adopt(i int) {
	n := m.nodes[i]
	a, v := &n.agent, n.versions[n.agent.seen]
	head, boot := a.head, a.boot
	if m.without("S5") {
		head = Head{}
	}
	if m.without("S5 first") {
		head.Epoch = 0
	}
	if m.without("boot") {
		boot = v.Spec.Boot
	}
	c := Adopt(a.state, head, boot, v)
	if err := c.Apply(a.state, Node{}, m.now); err != nil {
		panic(err)
	}
	if c.Revision > 0 {
		a.head = c.Head
	}
}

// send has the agent write a spec that differs from the one it saw.
func (m *machine) send(i int, next Spec, withdrawn []netip.Prefix) {
	a := &m.nodes[i].agent
	if v := m.nodes[i].versions[a.seen]; Stale(a.head, v.Status) { // before the operator has described it says nothing else
		next, withdrawn = Seen(a.state, v, a.head), nil
	}
	own := func(p patch) bool { return p.run == a.run }
	if !reflect.DeepEqual(next, m.nodes[i].versions[a.seen].Spec) && !slices.ContainsFunc(a.patches, own) {
		a.patches = append(a.patches, patch{next, a.seen, a.run, withdrawn})
	}
}

// publish has the agent write what goes back, or, after a boot, that it begins.
func (m *machine) publish(i int) {
	a := &m.nodes[i].agent
	v := m.nodes[i].versions[a.seen]
	if v.Spec.Boot != a.boot && !m.without("boot") {
		m.send(i, Begin(v, a.boot), nil)
		return
	}
	if Stale(a.head, v.Status) {
		m.send(i, Seen(a.state, v, a.head), nil)
		return
	}
	m.send(i, Hear(v, Publish(a.state, v)), nil)
}

// withdraw has the agent take back what it can of an address.
func (m *machine) withdraw(i int, p netip.Prefix) {
	a := &m.nodes[i].agent
	v := m.nodes[i].versions[a.seen]
	if m.without("S7 withdrawn") {
		v.Status.Quarantined = nil
	}
	next, back := Withdraw(v, v.Spec, Addresses(eni.Limits{}, p))
	if len(back) == 0 || Stale(a.head, v.Status) {
		return
	}
	m.send(i, next, back)
	if m.without("S4") {
		a.state.CancelRelease(Addresses(eni.Limits{}, back...), m.now)
	}
}

// land lets a spec write arrive: with the version that it was made from, or it conflicts (S1). The answer reaches the agent that
// sent it, or nobody.
func (m *machine) land(i, which int, answered bool) {
	n := m.nodes[i]
	a := &n.agent
	p := a.patches[which]
	a.patches = slices.Delete(a.patches, which, which+1)
	if p.base != len(n.versions)-1 && !m.without("S1") {
		return
	}
	n.versions = append(n.versions, View{p.spec, n.current().Status})
	if !answered || p.run != a.run {
		return
	}
	answer := n.current()
	if m.without("S7 withdrawn") {
		answer.Status.Quarantined = nil
	}
	a.seen = len(n.versions) - 1
	a.state.CancelRelease(Confirmed(answer, p.withdrawn), m.now)
	if !m.without("S7 withdrawn") { // adoption is a change of the cache of its own, and a pod may come before
		m.adopt(i)
	}
}

// restore puts an object back to an early version. Later ones come after that.
func (m *machine) restore(i, version int) {
	n := m.nodes[i]
	n.versions = append(n.versions, n.versions[version])
}

// restart starts the agent again: it reads the newest version (S5), and keeps the cache. Its write is on its way still.
func (m *machine) restart(i, version int) {
	n := m.nodes[i]
	n.agent.run++
	n.agent.seen = len(n.versions) - 1
	if m.without("S5") {
		n.agent.seen = version
	}
	m.adopt(i)
}

// reboot starts the node again: no pod is left, and no cache. What the agent has seen is kept.
func (m *machine) reboot(i int) {
	a := &m.nodes[i].agent
	a.state = &ipam.State{Settings: a.state.Settings, ENIs: a.state.ENIs}
	if a.boot = fmt.Sprint("boot-", a.run+1); m.without("kept") {
		a.head = Head{}
	}
	m.restart(i, len(m.nodes[i].versions)-1)
}
