package fleet

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// later does something after a while, unless the world ends before.
func (w *world) later(d time.Duration, f func()) {
	w.life.Go(func() {
		if sleep(w.ctx, d); w.ctx.Err() == nil {
			f()
		}
	})
}

// upTo returns a random time.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

func (w *world) anyNode() *node { return w.nodes[w.rng.IntN(len(w.nodes))] }

// step lets something happen, and some time pass.
func (w *world) step() {
	switch d := w.rng.IntN(100); {
	case d < 62:
		for range 1 + len(w.nodes)/8 {
			w.anyNode().setPods(w.rng.IntN(17), w.rng)
		}
	case d < 72:
		w.restartAgent(w.anyNode())
	default:
		m := w.mishap()
		w.note("mishap: %s", m.name)
		m.begin(w)
	}
	for _, n := range w.nodes {
		if n.isDead() {
			n.kill()
			n.start(-1, false)
		}
	}
	sleep(w.ctx, w.upTo(20*time.Second))
	if b := w.store.save(); len(w.backups) == 0 || b.at.Sub(w.backups[len(w.backups)-1].at) > time.Minute {
		w.backups = append(w.backups, b)
	}
}

// restartAgent starts an agent again, in the middle of what it does, or with its node.
func (w *world) restartAgent(n *node) {
	switch d := w.rng.IntN(6); {
	case d == 0:
		w.note("%s boots", n.name)
		n.reboot()
	case d == 1:
		n.stop()
		n.start(1+w.rng.IntN(20), w.rng.IntN(2) == 0)
	default:
		n.kill()
		n.start(1+w.rng.IntN(20), w.rng.IntN(2) == 0)
	}
}

// mishap is something that goes wrong.
type mishap struct {
	name  string
	begin func(w *world)
}

// mishap returns one of those that this world has.
func (w *world) mishap() mishap {
	if len(w.mishaps) == 0 {
		return mishaps[w.rng.IntN(len(mishaps))]
	}
	name := w.mishaps[w.rng.IntN(len(w.mishaps))]
	return mishaps[slices.IndexFunc(mishaps, func(m mishap) bool { return m.name == name })]
}

// putBack puts the store back from a backup.
func (w *world) putBack() {
	i := slices.IndexFunc(w.backups, func(b backup) bool { return time.Since(b.at) < 11*time.Minute })
	if i >= 0 {
		w.store.restore(w.backups[i], w.rng.IntN(2) == 0)
		w.backups = nil // what came after is of another history
	}
}

// changing are the requests that change something.
var changing = []string{sim.ActAssign, sim.ActUnassign, sim.ActCreate, sim.ActAttach, sim.ActModify, sim.ActDetach, sim.ActDelete}

var mishaps = []mishap{
	{"the leader is killed at an effect", func(w *world) {
		p := w.leader()
		p.setTrap(&trap{skip: w.rng.IntN(6), after: w.rng.IntN(2) == 0, do: p.kill})
	}},
	{"an operator is killed", func(w *world) { w.slots[w.rng.IntN(2)].current().kill() }},
	{"the leader ends", func(w *world) { w.leader().cancel() }},
	{"the leader is stopped for a minute in the middle of a release", func(w *world) {
		p := w.leader()
		p.setTrap(&trap{at: sim.ActUnassign, after: w.rng.IntN(3) == 0, do: func() { p.stopFor(time.Minute) }})
		for _, n := range w.nodes { // there is something to release soon
			if w.rng.IntN(3) == 0 {
				n.setPods(w.rng.IntN(3), w.rng)
			}
		}
	}},
	{"the leader is stopped for a minute at an effect", func(w *world) {
		p := w.leader()
		p.setTrap(&trap{skip: w.rng.IntN(4), after: w.rng.IntN(2) == 0, do: func() { p.stopFor(time.Minute) }})
	}},
	{"the operator is away for an hour", func(w *world) {
		kill := w.rng.IntN(2) == 0
		for _, s := range w.slots {
			s.goAway(time.Hour, kill)
		}
		for range 30 { // life goes on
			w.anyNode().setPods(w.rng.IntN(17), w.rng)
			sleep(w.ctx, w.upTo(4*time.Minute))
		}
	}},
	{"throttling to a tenth", func(w *world) {
		w.setLow(true)
		w.later(5*time.Minute, func() { w.setLow(false) })
	}},
	{"describes fail for ten minutes", func(w *world) {
		w.refuse("describes", sim.Chance{Action: sim.ActDescribe, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		w.later(10*time.Minute, func() { w.refuse("describes") })
	}},
	{"somebody else fills a subnet", func(w *world) {
		id := []string{"subnet-a", "subnet-b"}[w.rng.IntN(2)]
		_ = w.account.LeaveFree(id, w.rng.IntN(4))
		w.later(w.upTo(10*time.Minute), func() { _ = w.account.LeaveFree(id, all) })
	}},
	{"the store is put back from ten minutes ago", func(w *world) { w.putBack() }},
	{"the power fails: nodes boot, the store is put back from ten minutes ago", func(w *world) {
		w.putBack()
		for _, n := range w.nodes {
			if w.rng.IntN(3) > 0 {
				n.reboot()
			}
		}
	}},
	{"the leader's clock jumps", func(w *world) { w.leader().setClock(time.Duration(w.rng.IntN(9)-4) * time.Hour) }},
	{"a node's clock jumps", func(w *world) {
		n := w.anyNode()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.jump = time.Duration(w.rng.IntN(9)-4) * time.Hour
	}},
	{"the lease is deleted", func(w *world) {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.lease = nil
	}},
	{"the kinds are deleted and put back", func(w *world) {
		w.store.mu.Lock()
		w.store.kindless = true
		for _, name := range w.store.names("network") {
			w.store.endNetwork(name, time.Now())
		}
		for _, name := range w.store.names("subnet") {
			w.store.keep("subnet "+name, nil)
		}
		w.store.mu.Unlock()
		w.later(w.upTo(5*time.Minute), func() { w.store.set(func(s *weather) { s.kindless = false }) })
	}},
	{"one action is forbidden", func(w *world) {
		w.refuse("forbidden", sim.Chance{Action: changing[w.rng.IntN(len(changing))], Percent: 100, Fault: sim.Fault{Err: cloud.ErrForbidden}})
		w.later(w.upTo(10*time.Minute), func() { w.refuse("forbidden") })
	}},
	{"answers are lost, and effects late", func(w *world) {
		w.refuse("lost", sim.Chance{Action: sim.ActUnassign, Percent: 40, Fault: sim.Fault{Answer: sim.Lost, Later: 40 * time.Second}},
			sim.Chance{Action: sim.ActAssign, Percent: 15, Fault: sim.Fault{Answer: sim.Lost}}, sim.Chance{Action: sim.ActCreate, Percent: 15, Fault: sim.Fault{Answer: sim.Lost}},
			sim.Chance{Action: sim.ActAttach, Percent: 15, Fault: sim.Fault{Answer: sim.Lost}}, sim.Chance{Percent: 5, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}, After: true}})
		w.later(w.upTo(10*time.Minute), func() { w.refuse("lost") })
	}},
	{"the API server is away", func(w *world) {
		w.store.set(func(s *weather) { s.away = true })
		w.store.cutAll()
		w.later(w.upTo(3*time.Minute), func() { w.store.set(func(s *weather) { s.away = false }) })
	}},
	{"all watches break off", func(w *world) { w.store.cutAll() }},
	{"a node goes and another comes", func(w *world) {
		w.removeNode(w.anyNode())
		w.addNode().start(-1, false)
	}},
}

// all is more addresses than a subnet has.
const all = 1 << 20

// calm ends all mishaps.
func (w *world) calm() {
	w.note("calm")
	for _, name := range []string{"describes", "forbidden", "lost"} {
		w.refuse(name)
	}
	w.setLow(false)
	w.store.set(func(s *weather) { *s = weather{lag: s.lag, blind: s.blind, older: s.older} })
	for _, id := range []string{"subnet-a", "subnet-b"} {
		_ = w.account.LeaveFree(id, all)
	}
	for _, s := range w.slots {
		s.current().setTrap(nil)
	}
	for _, n := range w.nodes {
		if n.isDead() {
			n.kill()
			n.start(-1, false)
		}
		n.mu.Lock()
		n.life.killAt = -1
		n.mu.Unlock()
		n.setPods(w.rng.IntN(9), w.rng)
	}
}
