package order

import (
	"net/netip"
	"testing"
	"time"
)

const x = "10.0.0.10/32"

// Each story breaks a pod's network where one rule is left out, and with it the rule stops the story. They are the shortest
// ones that a search of all states of one address has found.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, story := range stories {
		t.Run(story.rule, func(t *testing.T) {
			for _, off := range []string{"", story.rule} {
				m := newMachine(off, 1, x)
				broken := ""
				for _, step := range story.steps {
					step(m)
					if broken == "" {
						broken = m.violation()
					}
				}
				switch {
				case off == "" && broken != "":
					t.Errorf("with all rules: %s", broken)
				case off != "" && broken == "":
					t.Errorf("%s left out breaks nothing: the rule is not in the functions that the story runs", off)
				}
			}
		})
	}
}

type step func(*machine)

var (
	addr     = netip.MustParsePrefix(x)
	fresh    = func(netip.Prefix) bool { return false }
	old      = func(netip.Prefix) bool { return true }
	drains   = func(m *machine) { m.drain(0, addr) }
	asks     = func(m *machine) { m.publish(0) }
	hears    = func(m *machine) { m.hear(0) }
	lands    = func(m *machine) { landAny(m, true) }
	lost     = func(m *machine) { landAny(m, false) }
	backs    = func(m *machine) { m.withdraw(0, addr) }
	pod      = func(m *machine) { m.addPod(0) }
	sees     = func(m *machine) { m.see(0, len(m.nodes[0].versions)-1) }
	reads    = func(m *machine) { m.watch(m.lead, 0, len(m.nodes[0].versions)-1) }
	accepts  = func(m *machine) { m.accept(m.lead, 0) }
	calls    = func(m *machine) { m.unassign(m.lead, 0, addr) }
	assigns  = func(m *machine) { m.assign(0, addr, true) }
	expires  = func(m *machine) { m.pass(lease.Duration); m.takeOver(1) }
	looks    = func(m *machine) { m.describe(m.lead, 0, fresh); m.learn(m.lead, 0) }
	assignsY = func(m *machine) { m.assignNew("10.0.0.20/32") }
	assignsZ = func(m *machine) { m.assignNew("10.0.0.21/32") }
	othersX  = func(m *machine) { m.move(addr, others) }
	looksOld = func(m *machine) { m.describe(m.lead, 0, old); m.learn(m.lead, 0) }
)

func landAny(m *machine, answered bool) {
	if len(m.nodes[0].agent.patches) > 0 {
		m.land(0, 0, answered)
	}
}

// takes lets the first call under way take effect; answered tells whether its answer comes.
func takes(answered bool) step {
	return func(m *machine) {
		for _, c := range m.calls {
			if !c.done {
				m.effect(c, answered)
				break
			}
		}
		if answered && len(m.calls) > 0 && m.calls[len(m.calls)-1].done {
			m.answer(m.calls[len(m.calls)-1])
		}
	}
}

func wait(d time.Duration) step { return func(m *machine) { m.pass(d); m.renew() } }

// puts puts the store back, to a version of the object, and has another leader come, which knows of nothing that was there before.
func puts(version func(*machine) int) step {
	return func(m *machine) {
		m.restore(0, version(m))
		m.pass(lease.Duration)
		m.takeOver(1 - m.lead)
	}
}

// published is an address that stands in the spec, and accepted one that stands in the status too.
var (
	published = []step{drains, asks, lands, reads}
	accepted  = append(append([]step{}, published...), accepts, sees)
)

func then(before []step, steps ...step) []step { return append(append([]step{}, before...), steps...) }

var stories = []struct {
	rule  string
	steps []step
}{
	// The operator accepts what it saw in a copy of before the withdrawal.
	{"S2", then(published, backs, lands, pod, accepts, calls, takes(true))},
	// It unassigns what it was only asked to.
	{"S3", then(published, backs, lands, pod, calls, takes(true))},
	// A write of an agent that was started again comes late.
	{"S1", then(nil, drains, asks, func(m *machine) { m.restart(0, 0) }, asks, func(m *machine) { m.land(0, len(m.nodes[0].agent.patches)-1, true) },
		backs, func(m *machine) { m.land(0, len(m.nodes[0].agent.patches)-1, true) }, lands, pod, reads, accepts, calls, takes(true))},
	// The line is taken back before the write is answered.
	{"S4", then(published, backs, pod, accepts, calls, takes(true))},
	// The agent starts on a node without a cache, and reads what was before.
	{"S5", then(accepted, calls, takes(true), sees, func(m *machine) { m.restart(0, 0) }, pod)},
	// The store is put back to what was before the address went, and the next leader writes on from there, up to what the agent has seen.
	{"S5 first", then(accepted, calls, takes(true), sees, asks, lands, othersX, puts(func(*machine) int { return 0 }), assignsY, assignsZ, sees)},
	// The same of what was accepted then, and serves a pod again: the agent is away when the next leader comes.
	{"S9", then(accepted, func(m *machine) { m.accepted = len(m.nodes[0].versions) - 1 }, calls, takes(true), sees, asks, lands, reads, assigns, sees, pod,
		puts(func(m *machine) int { return m.accepted }), calls, takes(true))},
	// A leader that was stopped sends its call after the next has assigned the address again.
	{"S6", then(accepted, expires, wait(lease.Settle), calls, sees, asks, lands, reads, calls, takes(true), sees, asks, lands, reads, assigns, sees,
		wait(lease.Fence), looks, sees, pod,
		func(m *machine) { m.unassign(0, 0, addr) }, takes(false))},
	// The first try's answer was lost, the second was done, and the first takes effect on the address that came again.
	{"S7", then(accepted, calls, calls, func(m *machine) { m.effect(m.calls[1], true); m.answer(m.calls[1]) }, sees, asks, lands, reads, assigns, sees, pod, takes(false))},
	// The same with a quarantine that ends by time alone: the describe is of before.
	{"S7 ended", then(accepted, calls, func(m *machine) { m.pass(validity - time.Second); m.renew() }, calls, func(m *machine) { m.effect(m.calls[1], true); m.answer(m.calls[1]) },
		sees, asks, lands, reads, assigns, func(m *machine) { m.describe(0, 0, fresh) }, takes(false), wait(lease.Fence), func(m *machine) { m.learn(0, 0) }, sees, pod)},
	// The same with a withdrawal that does not mind the quarantine.
	{"S7 withdrawn", then(accepted, calls, calls, func(m *machine) { m.effect(m.calls[1], true); m.answer(m.calls[1]) }, reads, assigns, sees, backs, lands, pod, takes(false))},
	// The object ends and is made again though an earlier leader has sent a call for what it had accepted: nobody of now knows of it.
	{"silence", then(nil, drains, calls, sees, hears, lands, reads, accepts, func(m *machine) { m.pass(lease.Duration - timeout - time.Millisecond) }, calls,
		func(m *machine) { m.pass(timeout + time.Millisecond); m.takeOver(1) }, reads, func(m *machine) { m.endObject(1, 0) },
		wait(lease.Settle), looks, sees, hears, lands, backs, lands, pod, takes(false))},
	// The same with a call of the leader that ends it, whose answer never came.
	{"silence own", then(nil, drains, calls, sees, hears, lands, reads, accepts, wait(lease.Fence), calls, wait(timeout), func(m *machine) { m.endObject(0, 0) },
		wait(lease.Settle), looks, sees, hears, lands, backs, lands, pod, takes(false))},
	// The describe of a new leader shows what the one before it has released.
	{"S8", then(accepted, wait(lease.Duration-timeout-time.Millisecond), calls, func(m *machine) { m.renew(); m.pass(lease.Duration - time.Millisecond) }, takes(true), sees, asks, lands,
		func(m *machine) { m.pass(time.Millisecond); m.takeOver(1) }, looksOld, sees, pod)},
	// An earlier leader writes what its describe showed before the call of the next one took effect.
	{"take", then(published, accepts, calls, func(m *machine) { m.effect(m.calls[0], true) }, func(m *machine) { m.assign(0, addr, false) },
		wait(lease.Settle), expires, func(m *machine) { m.answer(m.calls[0]) }, sees, asks, lands, wait(lease.Settle), func(m *machine) { m.describe(0, 0, fresh) },
		func(m *machine) { m.watch(0, 0, len(m.nodes[0].versions)-1) }, calls, takes(false), func(m *machine) { m.learn(0, 0) }, sees)},
	// What the agent sent before a boot lands when pods use the node again.
	{"boot", then(nil, drains, asks, func(m *machine) { m.reboot(0) }, pod, lost, reads, accepts, calls, takes(true))},
	// The node boots when the store has been put back to what was before the address went.
	{"kept", then(accepted, calls, takes(true), sees, asks, lands, puts(func(*machine) int { return 0 }), func(m *machine) { m.reboot(0) }, asks, lands, sees, pod)},
}

// assignNew has the leader assign an address that nobody had before.
func (m *machine) assignNew(a string) {
	p := netip.MustParsePrefix(a)
	m.cloud[p] = place{changed: -time.Hour}
	m.assign(0, p, true)
}
