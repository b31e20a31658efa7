package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// meddled is a driver with whose objects somebody else in the account meddles.
type meddled struct {
	driver.Driver
	attach func(id string) // before an ENI is attached
	show   func([]driver.Interface) []driver.Interface

	mu     sync.Mutex
	refuse func(method, about string) error
}

// refuseIf sets what is refused from now on, while calls are under way.
func (d *meddled) refuseIf(refuse func(method, about string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = refuse
}

func (d *meddled) refused(method, about string) error {
	d.mu.Lock()
	refuse := d.refuse
	d.mu.Unlock()
	if refuse == nil {
		return nil
	}
	return refuse(method, about)
}

func (d *meddled) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	if err := d.refused("Create", c.Subnet); err != nil {
		return driver.Interface{}, err
	}
	return d.Driver.Create(ctx, c)
}

func (d *meddled) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	if err := d.refused("Assign", a.On.ID); err != nil {
		return driver.Assigned{}, err
	}
	return d.Driver.Assign(ctx, a)
}

func (d *meddled) Unassign(ctx context.Context, u driver.Unassign) error {
	if err := d.refused("Unassign", u.On.ID); err != nil {
		return err
	}
	return d.Driver.Unassign(ctx, u)
}

func (d *meddled) Attach(ctx context.Context, a driver.Attach) (string, error) {
	if d.attach != nil {
		d.attach(a.ID)
	}
	return d.Driver.Attach(ctx, a)
}

func (d *meddled) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	if err := d.refused("Interfaces", ""); err != nil {
		return nil, err
	}
	list, err := d.Driver.Interfaces(ctx, f)
	if d.show != nil {
		list = d.show(list)
	}
	return list, err
}

func isForbidden() error {
	return &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Unauthorized, Detail: "UnauthorizedOperation"}
}

// withMeddler starts an agent on a node over a driver that a test changes before and after.
func withMeddler(t *testing.T, m sim.NodeSpec, change func(*world, *testNode, *meddled)) (*world, *testNode, *meddled) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"), subnet("subnet-b", "10.0.4.0/22"))
	if _, err := w.account.AddNode(sim.NodeSpec{Name: "n2", Limits: large, Subnet: "subnet-a"}); err != nil {
		t.Fatal(err)
	}
	m.Subnet = "subnet-a"
	n, d := w.addNode(testConfig("n1"), m), &meddled{}
	n.over = func(inner driver.Driver) driver.Driver {
		d.Driver = inner
		return d
	}
	n.options = func(o engine.Options) engine.Options {
		o.Subnets, o.SubnetTags = []string{"subnet-a"}, nil
		return o
	}
	change(w, n, d)
	n.start(-1, false)
	sleep(time.Minute)
	return w, n, d
}

// withOneENI is withMeddler with small ENIs of pods' own, whose first one it returns.
func withOneENI(t *testing.T, m sim.NodeSpec) (*world, *testNode, *meddled, string) {
	w, n, d := withMeddler(t, m, func(w *world, n *testNode, d *meddled) {
		n.conf.Pool.FirstENI, n.conf.Pool.Scale.Batch = 1, 4
	})
	for range 4 {
		_ = n.add()
	}
	sleep(time.Minute)
	n.retry()
	for _, i := range n.attached() {
		if i.Index == 1 {
			return w, n, d, i.ID
		}
	}
	t.Fatalf("no ENI for pods is at index 1: %+v", n.attached())
	return nil, nil, nil, ""
}

// all retries until no pod waits, and fails the test if that takes longer.
func (n *testNode) all(t *testing.T, within time.Duration) {
	t.Helper()
	left, began := 1, n.w.now()
	for left > 0 && n.w.now()-began < within {
		sleep(5 * time.Second)
		left = n.retry()
	}
	if left > 0 {
		t.Errorf("%d pods wait after %s; %d addresses on %+v, problem %q", left, within, n.total(), n.attached(), n.status().Problem)
	}
}

// enisWith returns the ENIs of the account that are so.
func (w *world) enisWith(which func(sim.Interface) bool) (list []string) {
	w.account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if which(i) {
				list = append(list, i.ID)
			}
		}
	})
	return list
}

var smallENIs = eni.Limits{ENIs: 6, V4: 5}
