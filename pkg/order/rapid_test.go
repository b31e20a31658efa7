package order

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// TestNoScheduleBreaksAPod is the contract of the package: whatever agents, operators, the cloud and others do, in whichever
// order, no pod has an address that is not on its node's ENI; and when faults stop, all that was accepted has ended.
func TestNoScheduleBreaksAPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine("", 2, "10.0.0.10/32", "10.0.0.64/30", "10.0.0.11/32", "10.0.0.68/30")
		t.Repeat(m.actions())
		m.comeToRest(t)
	})
}

// What goes wrong seldom begins at rest: this one begins somewhere in the stories of the rules.
func TestNoEndOfAStoryBreaksAPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine("", 1, x)
		m.tell(t)
		t.Repeat(m.actions())
		m.comeToRest(t)
	})
}

// tell runs the beginning of a story.
func (m *machine) tell(t *rapid.T) {
	story := rapid.SampledFrom(stories).Draw(t, "story")
	for _, step := range story.steps[:rapid.IntRange(0, len(story.steps)).Draw(t, "steps")] {
		step(m)
		m.check(t)
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){"": m.check}
	for name, act := range map[string]func(*rapid.T, int){
		"pod starts":      func(_ *rapid.T, i int) { m.addPod(i) },
		"pods end":        func(t *rapid.T, i int) { m.endPods(i, m.any(t).Contains) },
		"drain":           func(t *rapid.T, i int) { m.drain(i, m.any(t)) },
		"agent sees":      func(t *rapid.T, i int) { m.see(i, m.version(t, i)) },
		"agent publishes": func(_ *rapid.T, i int) { m.publish(i) },
		"agent withdraws": func(t *rapid.T, i int) { m.withdraw(i, m.any(t)) },
		"write lands":     m.landAny,
		"agent restarts":  func(t *rapid.T, i int) { m.restart(i, m.version(t, i)) },
		"reboot":          func(t *rapid.T, i int) { m.seldomDo(t, func() { m.reboot(i) }) },
		"operator sees":   func(t *rapid.T, i int) { m.watch(m.op(t), i, m.version(t, i)) },
		"accept":          func(t *rapid.T, i int) { m.accept(m.op(t), i) },
		"unassign":        func(t *rapid.T, i int) { m.unassign(m.op(t), i, m.any(t)) },
		"assign":          func(t *rapid.T, i int) { m.assign(i, m.any(t), often(t, "written")) },
		"describe": func(t *rapid.T, i int) {
			m.describe(m.op(t), i, func(netip.Prefix) bool { return rapid.Bool().Draw(t, "old") })
		},
		"describe with a gap": func(t *rapid.T, i int) {
			op := m.op(t)
			m.describe(op, i, func(netip.Prefix) bool { return rapid.Bool().Draw(t, "old") })
			shown := m.ops[op].shown[i].Shown
			shown[m.nodes[i].id] = slices.DeleteFunc(shown[m.nodes[i].id], func(netip.Prefix) bool { return rapid.Bool().Draw(t, "lacks") })
		},
		"learn": func(t *rapid.T, i int) { m.learn(m.op(t), i) },
	} {
		all[name] = func(t *rapid.T) { act(t, rapid.IntRange(0, len(m.nodes)-1).Draw(t, "node")) }
	}
	all["call takes effect"] = m.effectAny
	all["answer"] = m.answerAny
	all["others"] = m.othersAct
	all["renew"] = func(*rapid.T) { m.renew() }
	all["take over"] = func(t *rapid.T) { m.takeOver(m.op(t)) }
	all["time passes"] = func(t *rapid.T) { m.pass(time.Duration(rapid.IntRange(1, 8).Draw(t, "halves")) * time.Second / 2) }
	return all
}

func (m *machine) any(t *rapid.T) netip.Prefix { return rapid.SampledFrom(m.list()).Draw(t, "address") }
func (m *machine) op(t *rapid.T) int           { return rapid.IntRange(0, 1).Draw(t, "operator") }

// version draws one of the latest versions of a node's object.
func (m *machine) version(t *rapid.T, i int) int {
	last := len(m.nodes[i].versions) - 1
	return rapid.IntRange(max(0, last-3), last).Draw(t, "version")
}

func (m *machine) seldomDo(t *rapid.T, act func()) {
	if seldom(t, "now") {
		act()
	}
}

func (m *machine) landAny(t *rapid.T, i int) {
	if n := len(m.nodes[i].agent.patches); n > 0 {
		m.land(i, rapid.IntRange(0, n-1).Draw(t, "write"), often(t, "answered"))
	}
}

func (m *machine) effectAny(t *rapid.T) {
	open := slices.DeleteFunc(slices.Clone(m.calls), func(c *call) bool { return c.done })
	if len(open) > 0 {
		m.effect(rapid.SampledFrom(open).Draw(t, "call"), often(t, "answered"))
	}
}

func (m *machine) answerAny(t *rapid.T) {
	done := slices.DeleteFunc(slices.Clone(m.calls), func(c *call) bool { return !c.done })
	if len(done) > 0 {
		m.answer(rapid.SampledFrom(done).Draw(t, "call"))
	}
}

// othersAct lets others of the subnet take an address, or leave one.
func (m *machine) othersAct(t *rapid.T) {
	switch p := m.any(t); m.cloud[p].eni {
	case "":
		m.move(p, others)
	case others:
		m.move(p, "")
	}
}

func (m *machine) check(t *rapid.T) {
	if why := m.violation(); why != "" {
		t.Fatal(why)
	}
	for _, n := range m.nodes {
		if err := n.agent.state.Check(); err != nil {
			t.Fatal(err)
		}
		v := n.current()
		if Satisfied(v.Spec, v.Status, 0) && Have(v.Spec, v.Status) < v.Spec.Slots {
			t.Fatalf("satisfied with less than it asks for: %+v", v)
		}
	}
}

// comeToRest ends the faults: all that is under way arrives, each side sees the newest version and does what it does.
func (m *machine) comeToRest(t *rapid.T) {
	fresh := func(netip.Prefix) bool { return false }
	for range 12 {
		m.pass(lease.Settle)
		m.renew()
		for i, n := range m.nodes {
			for len(n.agent.patches) > 0 {
				m.land(i, 0, true)
			}
			m.see(i, len(n.versions)-1)
			m.publish(i)
			m.watch(m.lead, i, len(n.versions)-1)
			m.accept(m.lead, i)
			for _, p := range m.list() {
				m.unassign(m.lead, i, p)
			}
			for _, c := range slices.Clone(m.calls) {
				// An answer that came before is not the call again.
				if !c.done {
					m.effect(c, true)
				}
				m.watch(c.op, c.node, len(m.nodes[c.node].versions)-1)
				m.answer(c)
			}
			m.describe(m.lead, i, fresh)
			m.watch(m.lead, i, len(n.versions)-1)
			m.learn(m.lead, i)
		}
		m.check(t)
	}
	for _, n := range m.nodes {
		m.checkRest(t, n)
	}
}

// checkRest: nothing is on its way back or quarantined, and cloud, status and cache tell the same.
func (m *machine) checkRest(t *rapid.T, n *node) {
	v := n.current()
	if s := v.Status; len(v.Spec.Release)+len(s.Releasing)+len(s.Quarantined) > 0 {
		t.Fatalf("not at rest: release %v, releasing %v, quarantined %v", v.Spec.Release, s.Releasing, s.Quarantined)
	}
	free := 0
	for _, p := range m.list() {
		there := m.cloud[p].eni == n.id
		if there != slices.Contains(v.Status.ENIs[0].Addresses, p) {
			t.Fatalf("%s is on %q and the status of %s has %v", p, m.cloud[p].eni, n.id, v.Status.ENIs[0].Addresses)
		}
		for _, a := range Addresses(v.Status.Limits, p) {
			i := slices.IndexFunc(n.agent.state.Addresses, func(b eni.Address) bool { return b.Addr == a })
			if there != (i >= 0) {
				t.Fatalf("%s is on %q and the cache of %s has %+v", a, m.cloud[p].eni, n.id, n.agent.state.Addresses)
			}
			if there {
				free++
			}
		}
	}
	if have := Have(v.Spec, v.Status); have != free {
		t.Fatalf("%s has %d slots, its pods can have %d", n.id, have, free)
	}
}
