package operator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// A zone has more subnets than an object may name. Who is asked for idle slots there has an object that the API server still takes.
func TestANodeIsAskedForIdleSlotsInNoMoreSubnetsThanItsObjectTakes(t *testing.T) {
	s := setup{nodes: 2, lieIn: []string{"zz", "zz"}, subnets: []sim.Subnet{{ID: "zz", V4: mustPrefix("10.0.0.0/27")}}}
	for i := range 70 {
		s.subnets = append(s.subnets, sim.Subnet{ID: fmt.Sprintf("n-%02d", i), V4: mustPrefix(fmt.Sprintf("10.0.%d.0/28", i+1))})
	}
	play(t, s, func(ctx context.Context, w *world) {
		w.agents[0].spare = 8
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(6 * time.Minute)
		for _, n := range s.subnets {
			w.must(w.LeaveFree(n.ID, 0))
		}
		w.agents[1].set(6)
		w.until(5*time.Minute, func() bool { return len(w.agents[1].used()) == 6 })
		is := w.store.node(w.agents[0].name).Status
		if !slices.Contains(is.ReclaimIn, "zz") {
			t.Errorf("its own subnet is not among %v", is.ReclaimIn)
		}
		if n := len(is.ReclaimIn); is.Reclaim == 0 || n > 64 {
			t.Errorf("it is asked for %d slots in %d subnets; an object takes 64", is.Reclaim, n)
		}
	})
}

// A node that the cluster does not reach gives nothing back, however much it idles: pods do not wait for its answer.
func TestIdleSlotsAreNotAskedOfNodesThatTheClusterDoesNotReach(t *testing.T) {
	s := setup{nodes: 3, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/26")}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.agents[0].spare, w.agents[1].spare = 20, 8
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(6 * time.Minute)
		w.must(w.LeaveFree("a", 0))
		dead := w.agents[0]
		w.store.changeNode(dead.name, func(n *operator.Node) { n.Cut = true })
		dead.end()
		time.Sleep(10 * time.Second)
		w.agents[2].set(5)
		w.until(10*time.Minute, func() bool { return w.store.node(w.agents[2].name).Spec.Waiting > 0 })
		if took := w.until(10*time.Minute, func() bool { return len(w.agents[2].used()) == 5 }); took > 15*time.Second {
			t.Errorf("it takes %s", took)
		}
	})
}
