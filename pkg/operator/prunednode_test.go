package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// The installed kinds are older than the operator, as where a tool that installs it never upgrades kinds: the API server prunes a field that it
// does not know. What can't be kept is not written again and again.
func TestAStatusThatIsPrunedIsNotWrittenAgainAndAgain(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.store.answers = 5 * time.Millisecond
		w.store.prunes = func(s *crd.NodeNetworkStatus) { s.InstanceType = "" }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(5)
		time.Sleep(3 * time.Minute)
		if n := len(a.used()); n < 5 {
			t.Errorf("%d of 5 pods have addresses after three minutes", n)
		}
		writes := func(d time.Duration) int {
			before := w.store.writesOf(a.name)
			time.Sleep(d)
			return w.store.writesOf(a.name) - before
		}
		if n := writes(time.Minute); n > 5 {
			t.Errorf("%d writes in a minute of a node of five pods", n)
		}
		a.set(1000) // some wait for ever
		time.Sleep(5 * time.Minute)
		if n := writes(time.Minute); n > 30 {
			t.Errorf("%d writes in a minute of a node whose pods wait", n)
		}
	})
}

// A field by which the protocol goes is lacking, as what a late call may still take: a later leader would not know of it. Nothing is called
// for the node then, people are told once, and the writes come ever more rarely.
func TestAPromiseThatIsPrunedKeepsTheNodeFromCalls(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		var told notices
		w.store.prunes = func(s *crd.NodeNetworkStatus) { s.Created, s.Releasing = 0, nil }
		w.leadWith(ctx, func(o *operator.Options) { o.Tell = told.tell })
		w.begin(ctx)
		a := w.agents[0]
		a.set(9)
		w.until(5*time.Minute, func() bool { return len(a.used()) == 9 })
		a.set(2)
		time.Sleep(10 * time.Minute)
		calls, before := w.Calls()[sim.ActUnassign], w.store.writesOf(a.name)
		time.Sleep(10 * time.Minute)
		if n := w.Calls()[sim.ActUnassign]; n != 0 || n != calls {
			t.Errorf("%d releases of what no later leader would know to be accepted", n)
		}
		if n := w.store.writesOf(a.name) - before; n > 15 {
			t.Errorf("%d writes in ten minutes", n)
		}
		if n := told.count("KindsOutdated"); n != 2 {
			t.Errorf("people are told %d times of two fields", n)
		}
	})
}
