package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// The store is put back from a backup while a node's agent is away, and another operator leads, which has seen nothing of what was there before.
// What the backup says goes back serves pods since: nothing is taken until the agent has spoken, however long that takes. Then the node goes on.
func TestALeaderTakesNothingFromANodeWhoseAgentIsAway(t *testing.T) {
	accepts := func(w *world, is bool) {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if w.store.deny = nil; !is {
			w.store.deny = func(string) error { return errServer }
		}
	}
	for name, save := range map[string]func(w *world, a *agent) saved{
		"published": func(w *world, a *agent) saved {
			accepts(w, false)
			a.set(4)
			w.until(time.Minute, func() bool { return len(w.store.node(a.name).Spec.Release) > 0 })
			b := w.store.save()
			a.set(24)
			w.until(time.Minute, func() bool { return len(w.store.node(a.name).Spec.Release) == 0 && len(a.used()) >= 20 })
			accepts(w, true)
			return b
		},
		"accepted": func(w *world, a *agent) saved {
			w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
			a.set(4)
			w.until(10*time.Minute, func() bool { return len(w.store.node(a.name).Status.Releasing) > 0 })
			b := w.store.save()
			w.SetFaults()
			w.until(15*time.Minute, w.isQuiet)
			a.set(24)
			w.until(10*time.Minute, func() bool { return len(a.used()) == 24 })
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{nodes: 1, account: sim.Options{Reuse: sim.ReuseLatest}}, func(ctx context.Context, w *world) {
				a := w.agents[0]
				w.leadWith(ctx, nil)
				w.beginWith(ctx)
				life, stop := context.WithCancel(ctx)
				go a.run(life)
				a.set(20)
				w.until(3*time.Minute, w.isQuiet)
				b := save(w, a)
				stop() // its pods run
				time.Sleep(2 * time.Second)
				w.lead.kill()
				before := w.Calls()[sim.ActUnassign]
				w.store.restore(b, true)
				w.leadWith(ctx, nil)
				time.Sleep(20 * time.Minute)
				if n := w.Calls()[sim.ActUnassign] - before; n != 0 {
					t.Errorf("%d calls took something from a node whose agent has not spoken", n)
				}
				a.seen = nil
				go a.run(ctx)
				a.set(30)
				w.until(20*time.Minute, func() bool { return len(a.used()) == 30 })
				a.set(3)
				w.until(20*time.Minute, func() bool { return w.Calls()[sim.ActUnassign] > before && w.isQuiet() })
				w.check()
			})
		})
	}
}

// An agent of a release that does not say whose status it has read gives addresses back all the same, also to a leader that comes next.
func TestAnAgentThatDoesNotSayWhatItHasReadGivesToo(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		a.old = true
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(20)
		w.until(3*time.Minute, w.isQuiet)
		w.lead.kill()
		w.leadWith(ctx, nil)
		a.set(4)
		w.until(10*time.Minute, func() bool { return w.Calls()[sim.ActUnassign] > 0 && w.isQuiet() })
		w.check()
	})
}

// A new leader has no agent write of whose node nothing goes back, nor does it take over the node. One that finds what goes back takes it once the
// agent has read of it, which is a write of each of both more.
func TestANewLeaderAsksOnlyWhoGivesSomething(t *testing.T) {
	play(t, setup{nodes: 3}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(20)
		}
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(2 * time.Minute)
		giver := w.agents[0]
		w.SetFaults(sim.Chance{Action: sim.ActUnassign, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		giver.set(4)
		w.until(10*time.Minute, func() bool { return len(w.store.node(giver.name).Status.Releasing) > 0 })
		time.Sleep(5 * time.Minute)
		w.lead.kill()
		was, writes := map[string]*crd.NodeNetwork{}, giver.writes
		for _, a := range w.agents {
			was[a.name] = w.store.node(a.name)
		}
		w.leadWith(ctx, nil)
		time.Sleep(3 * time.Minute)
		for _, a := range w.agents[1:] {
			if n := w.store.node(a.name); n.Generation != was[a.name].Generation || n.Status.Epoch != was[a.name].Status.Epoch {
				t.Errorf("%s was written: %+v, before %+v", a.name, n, was[a.name])
			}
		}
		n := w.store.node(giver.name)
		if said := giver.writes - writes; n.Spec.SeenEpoch != n.Status.Epoch || said != 1 {
			t.Errorf("the agent wrote %d times, and says %d of leader %d", said, n.Spec.SeenEpoch, n.Status.Epoch)
		}
		w.SetFaults()
		w.until(10*time.Minute, w.isQuiet)
		w.check()
	})
}
