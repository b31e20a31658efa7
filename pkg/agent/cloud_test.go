package agent

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
)

// cloudOf is the cloud as one process calls it. What is called while it is alive
// happens; a dead process calls nothing and hears nothing.
type cloudOf struct {
	*engine.Node
	p process
}

// newCloud is the cloud as a process that has just begun sees it: it remembers nothing.
func newCloud(p process) cloudOf {
	account, name := p.n.w.account, p.n.name
	var d driver.Driver = halves{account.NodeDriver(name), p}
	if p.n.over != nil {
		d = p.n.over(d)
	}
	o := account.NodeOptions(name)
	if p.n.options != nil {
		o = p.n.options(o)
	}
	return cloudOf{engine.New(d, o), p}
}

// send is a call on its way out. Calls that begin together leave at times of their
// own, so that a run can be repeated.
func (c cloudOf) send(method string, what ...any) error {
	c.p.ownTime(method, what)
	return c.p.do(func() error {
		c.p.l.sent++
		c.p.n.w.asked(method)
		return nil
	})
}

// ownTime waits for a time that nothing else happens at.
func (p process) ownTime(what ...any) {
	h := fnv.New32()
	fmt.Fprint(h, p.n.name, what)
	time.Sleep(time.Duration(h.Sum32()%1_000_000) * time.Nanosecond)
}

func (c cloudOf) Limits(ctx context.Context) (eni.Limits, error) {
	if err := c.send("Limits"); err != nil {
		return eni.Limits{}, err
	}
	l, err := c.Node.Limits(ctx)
	if c.p.n.limits != nil && err == nil {
		l = *c.p.n.limits
	}
	return l, err
}

func (c cloudOf) Interfaces(ctx context.Context) ([]cloud.Interface, error) {
	if err := c.send("Interfaces"); err != nil {
		return nil, err
	}
	return c.Node.Interfaces(ctx)
}

func (c cloudOf) Subnets(ctx context.Context) ([]cloud.Subnet, error) {
	if err := c.send("Subnets"); err != nil {
		return nil, err
	}
	list, err := c.Node.Subnets(ctx)
	if shows := c.p.n.shows; shows != nil {
		for i := range list {
			if of := c.p.n.showsOf; of != "" && of != list[i].ID {
				continue
			}
			list[i].Free, list[i].Reserves = *shows, true
		}
	}
	return list, err
}

func (c cloudOf) CreateInterface(ctx context.Context, request cloud.Create) (cloud.Interface, error) {
	if err := c.send("CreateInterface", request); err != nil {
		return cloud.Interface{}, err
	}
	return c.Node.CreateInterface(ctx, request)
}

func (c cloudOf) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) ([]netip.Addr, error) {
	if err := c.send("AssignAddresses", id, f, n); err != nil {
		return nil, err
	}
	return c.Node.AssignAddresses(ctx, id, f, n)
}

func (c cloudOf) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	if err := c.send("UnassignAddresses", id, addrs); err != nil {
		return err
	}
	c.p.n.mayGo(addrs)
	err := c.Node.UnassignAddresses(ctx, id, addrs)
	if errors.Is(err, cloud.ErrForbidden) {
		c.p.n.refused.Add(1)
	}
	return err
}

func (c cloudOf) DeleteInterface(ctx context.Context, id string) error {
	if err := c.send("DeleteInterface", id); err != nil {
		return err
	}
	c.p.n.mayLose(id)
	return c.Node.DeleteInterface(ctx, id)
}

// mayLose is mayGo for all addresses of an ENI.
func (n *testNode) mayLose(id string) {
	for _, nic := range n.attached() {
		if nic.ID == id {
			n.mayGo(nic.Addresses)
		}
	}
}

// mayGo fails the test if a pod uses one of the addresses.
func (n *testNode) mayGo(addrs []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pod := range n.pods {
		for _, a := range pod.addrs {
			if slices.Contains(addrs, a) && !n.w.taken[a] {
				n.w.t.Errorf("%s: address %s is given back while %s uses it", n.name, a, pod.owner.Pod)
			}
		}
	}
	for _, a := range addrs {
		if n.routed[a] && n.cacheErr == nil && !n.w.taken[a] {
			n.w.t.Errorf("%s: address %s is given back while the kernel routes it", n.name, a)
		}
	}
}
