package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// Why a node has not more holds until the next leader knows better: else each of thousands whose subnet is full would be written twice, at once
// since pods wait there, and people were told for a while that nothing is wrong.
func TestTheNextLeaderTellsOfTheCausesThatTheLastOneKnew(t *testing.T) {
	subnets := []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/27")}}
	play(t, setup{nodes: 2, subnets: subnets}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		isFull := func(n *crd.NodeNetwork) bool {
			return n != nil && slices.ContainsFunc(n.Status.Causes, func(c crd.Cause) bool { return c.Reason == "SubnetFull" })
		}
		a.set(40)
		w.until(5*time.Minute, func() bool { return isFull(w.store.node(a.name)) })
		time.Sleep(5 * time.Minute)
		if !isFull(w.store.node(a.name)) {
			t.Fatal("its subnet is not full")
		}
		w.lead.kill()
		time.Sleep(lease.Duration)
		before := w.store.writesOf(a.name)
		w.store.mu.Lock()
		w.store.written = func(n *crd.NodeNetwork) {
			if n.Name == a.name && !isFull(n) {
				w.complain("the next leader takes back why: %+v", n.Status.Conditions)
			}
		}
		w.store.mu.Unlock()
		w.leadWith(ctx, nil)
		time.Sleep(9 * time.Minute)
		if n := w.store.writesOf(a.name); n > before {
			t.Logf("%d writes", n-before)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, bad := range w.wrong {
			t.Error(bad)
		}
	})
}
