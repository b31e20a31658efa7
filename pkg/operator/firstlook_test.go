package operator_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// crowd is a cloud that takes long to show many instances.
type crowd struct {
	driver.Driver
	many atomic.Bool
}

func (c *crowd) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	if of := max(len(s.Attached), len(s.Made)); c.many.Load() && of != 1 {
		time.Sleep(4 * time.Second)
	}
	return c.Driver.Page(ctx, s)
}

// A new leader asks first about the nodes whose pods wait: they do not wait until all others are described.
func TestANewLeaderServesWhoWaitsBeforeAllAreDescribed(t *testing.T) {
	play(t, setup{nodes: 4, perScan: 200}, func(ctx context.Context, w *world) {
		c := &crowd{}
		w.wrap = func(d driver.Driver) driver.Driver { c.Driver = d; return c }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(5)
		}
		w.until(5*time.Minute, w.isQuiet)
		w.lead.kill()
		c.many.Store(true)
		time.Sleep(lease.Duration)
		a := w.agents[0]
		a.set(30)
		w.leadWith(ctx, nil)
		if took := w.until(time.Minute, func() bool { return len(a.used()) == 30 }); took > lease.Settle+3*time.Second {
			t.Errorf("the pods have waited %s for the next leader", took)
		}
	})
}

// losesItsLeader has some agents served, and kills their leader. From then on the cloud takes long to show many instances.
func (w *world) losesItsLeader(ctx context.Context, served []*agent) {
	c := &crowd{}
	w.wrap = func(d driver.Driver) driver.Driver { c.Driver = d; return c }
	w.leadWith(ctx, nil)
	w.beginWith(ctx, served...)
	for _, a := range served {
		a.set(5)
	}
	w.until(5*time.Minute, func() bool {
		return !slices.ContainsFunc(served, func(a *agent) bool { return len(a.used()) < 5 })
	})
	w.lead.kill()
	c.many.Store(true)
	time.Sleep(lease.Duration)
}

// So does it a node that has come while nobody led, whose agent asks for addresses once its instance is described.
func TestANewLeaderServesANewNodeBeforeAllAreDescribed(t *testing.T) {
	play(t, setup{nodes: 4, perScan: 200}, func(ctx context.Context, w *world) {
		late := w.agents[3]
		w.losesItsLeader(ctx, w.agents[:3])
		w.beginWith(ctx, late)
		w.leadWith(ctx, nil)
		took := w.until(time.Minute, func() bool { n := w.store.node(late.name); return n != nil && n.Status.DescribedAt != nil })
		late.set(5)
		if took += w.until(time.Minute, func() bool { return len(late.used()) == 5 }); took > lease.Settle+6*time.Second {
			t.Errorf("the pods of the new node have waited %s for the next leader", took)
		}
	})
}

// Nodes without a provider ID, of which no describe can tell, keep no other one from that.
func TestNodesWithoutAnInstanceTakeNoPlaceInTheFirstDescribe(t *testing.T) {
	play(t, setup{nodes: 104, perScan: 200}, func(ctx context.Context, w *world) {
		late := w.agents[103]
		w.losesItsLeader(ctx, w.agents[:3])
		for _, a := range w.agents[3:103] {
			w.store.changeNode(a.name, func(n *operator.Node) { n.Instance = "" })
			w.putNode(a.name)
		}
		w.beginWith(ctx, late)
		w.leadWith(ctx, nil)
		took := w.until(time.Minute, func() bool { n := w.store.node(late.name); return n != nil && n.Status.DescribedAt != nil })
		late.set(5)
		if took += w.until(time.Minute, func() bool { return len(late.used()) == 5 }); took > lease.Settle+6*time.Second {
			t.Errorf("the pods of the new node have waited %s for the next leader", took)
		}
	})
}

// Of more waiting nodes than are described first those come first that wait longest, whatever they are called.
func TestOfManyWaitingNodesTheLongestIsDescribedFirst(t *testing.T) {
	plenty := cloud.Bucket{Burst: 1000, PerSecond: 1000}
	s := setup{nodes: 104, perScan: 200, checks: time.Minute, buckets: map[string]cloud.Bucket{sim.ActDescribe: plenty, sim.ActSubnets: plenty, sim.ActShape: plenty, sim.ActAssign: plenty}}
	play(t, s, func(ctx context.Context, w *world) {
		c := &crowd{}
		w.wrap = func(d driver.Driver) driver.Driver { c.Driver = d; return c }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(10*time.Minute, w.isQuiet)
		w.lead.kill()
		c.many.Store(true)
		time.Sleep(lease.Duration)
		last := w.agents[103]
		last.set(6)
		time.Sleep(2 * time.Second)
		for _, a := range w.agents[:103] {
			a.set(6)
		}
		time.Sleep(2 * time.Second)
		w.leadWith(ctx, nil)
		if took := w.until(time.Minute, func() bool { return len(last.used()) == 6 }); took > lease.Settle+10*time.Second {
			t.Errorf("the pods that have waited longest wait %s for the next leader", took)
		}
	})
}
