package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/quota"
)

// tokensOf returns what the operator that leads may send of an action.
func (w *world) tokensOf(ctx context.Context, action string) operator.Tokens {
	w.Helper()
	r, err := w.leading().Report(ctx)
	w.must(err)
	at := slices.IndexFunc(r.Budget, func(b operator.Tokens) bool { return b.Action == action })
	if at < 0 {
		w.Fatalf("no budget of %s in %+v", action, r.Budget)
	}
	return r.Budget[at]
}

// Where nodes call the cloud themselves the operator leaves them what they send, and takes it back when they have changed over.
func TestTheShareIsLessByWhatOtherNodesSend(t *testing.T) {
	s := setup{nodes: 2, buckets: map[string]cloud.Bucket{sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActAssign: {Burst: 10, PerSecond: 1}, sim.ActUnassign: {Burst: 100, PerSecond: 5}}}
	play(t, s, func(ctx context.Context, w *world) {
		self := w.agents[1]
		self.change(crd.Self, nil)
		w.leadWith(ctx, func(o *operator.Options) {
			o.Budget = map[string]quota.Limit{sim.ActUnassign: {Burst: 7, PerSecond: 3}}
		})
		w.begin(ctx)
		w.agents[0].set(3)
		time.Sleep(time.Minute)
		if got := w.tokensOf(ctx, sim.ActDescribe); got.Others != 1.0/300 || got.Usual != 19.997 {
			t.Errorf("one node describes every five minutes: %+v", got)
		}
		if got := w.tokensOf(ctx, sim.ActAssign); got.Others != 0 || got.Usual != 1 {
			t.Errorf("nothing has changed on it: %+v", got)
		}
		// Its agent assigns and releases, a describe each.
		own := engine.New(w.Driver("i-node-001", w.traits), engine.Options{SubnetTags: forPods, Cluster: "blue"})
		list, err := own.Interfaces(ctx)
		w.must(err)
		got, err := own.AssignAddresses(ctx, list[0].ID, eni.IPv4, 4)
		w.must(err)
		w.until(6*time.Minute, func() bool { return w.tokensOf(ctx, sim.ActAssign).Others > 0 })
		if got := w.tokensOf(ctx, sim.ActAssign); got.Others != 1.0/300 || got.Usual != 0.997 || got.Tokens > 9 {
			t.Errorf("it assigned once in five minutes: %+v", got)
		}
		w.must(own.UnassignAddresses(ctx, list[0].ID, got[:2]))
		w.until(12*time.Minute, func() bool { return w.tokensOf(ctx, sim.ActAssign).Others == 0 })
		if got := w.tokensOf(ctx, sim.ActUnassign); got.Others != 0 || got.Usual != 3 {
			t.Errorf("of what the configuration says nothing is taken off: %+v", got)
		}
		self.change(crd.Operator, &crd.Handover{})
		w.until(5*time.Minute, func() bool { return w.store.node(self.name).Status.Mode == crd.Operator })
		w.until(6*time.Minute, func() bool { return w.tokensOf(ctx, sim.ActDescribe).Others == 0 })
		if got := w.tokensOf(ctx, sim.ActDescribe); got.Usual != 20 {
			t.Errorf("nobody else calls any more: %+v", got)
		}
		w.check()
	})
}

// A Node whose agent never asked the operator calls the cloud itself; one that has just come may ask in a moment. Nodes of another CNI call nothing.
func TestNodesWithoutAnObjectCallTheCloudThemselves(t *testing.T) {
	s := setup{nodes: 4, buckets: map[string]cloud.Bucket{sim.ActDescribe: {Burst: 100, PerSecond: 20}}}
	play(t, s, func(ctx context.Context, w *world) {
		for name, node := range w.store.nodes {
			node.Agent = name != "node-003"
			w.store.nodes[name] = node
		}
		w.leadWith(ctx, nil)
		w.beginWith(ctx, w.agents[0])
		time.Sleep(time.Minute)
		if got := w.tokensOf(ctx, sim.ActDescribe); got.Others != 0 {
			t.Errorf("after one describe: %+v", got)
		}
		time.Sleep(5 * time.Minute)
		if got := w.tokensOf(ctx, sim.ActDescribe); got.Others != 2.0/300 {
			t.Errorf("after two describes: %+v", got)
		}
	})
}
