package agent

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// ranged is a driver of a cloud whose pods' addresses are in ranges of their own: those of the
// account with another second byte.
type ranged struct{ driver.Driver }

func moved(addrs []netip.Addr, second byte) (out []netip.Addr) {
	for _, a := range addrs {
		b := a.As4()
		b[1] = second
		out = append(out, netip.AddrFrom4(b))
	}
	return out
}

func (d ranged) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	list, err := d.Driver.Subnets(ctx, f)
	for i := range list {
		list[i].Pods = []netip.Prefix{netip.PrefixFrom(moved([]netip.Addr{list[i].V4.Addr()}, 64)[0], list[i].V4.Bits())}
	}
	return list, err
}

func (d ranged) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	list, err := d.Driver.Interfaces(ctx, f)
	for i := range list {
		list[i].Singles = moved(list[i].Singles, 64)
	}
	return list, err
}

func (d ranged) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	made, err := d.Driver.Create(ctx, c)
	made.Singles = moved(made.Singles, 64)
	return made, err
}

func (d ranged) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	a.Addresses = moved(a.Addresses, 0)
	got, err := d.Driver.Assign(ctx, a)
	got.Addresses = moved(got.Addresses, 64)
	return got, err
}

func (d ranged) Unassign(ctx context.Context, u driver.Unassign) error {
	u.Addresses = moved(u.Addresses, 0)
	return d.Driver.Unassign(ctx, u)
}

// withRanges is a node of such a cloud with pods on several ENIs.
func withRanges(t *testing.T) *testNode {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	conf := testConfig("n1")
	conf.Settings.VPC = append(conf.Settings.VPC, netip.MustParsePrefix("10.64.0.0/16"))
	n := w.addNode(conf, sim.NodeSpec{Limits: smallENIs, Subnet: "subnet-a"})
	n.over = func(inner driver.Driver) driver.Driver { return ranged{inner} }
	n.start(-1, false)
	for range 12 {
		_ = n.add()
	}
	n.all(t, 5*time.Minute)
	return n
}

// usesRanges fails the test unless pods have so many addresses, all of ranges for pods, and
// nothing is wrong.
func (n *testNode) usesRanges(t *testing.T, pods int) {
	t.Helper()
	n.mu.Lock()
	cached := n.cached.Clone()
	n.mu.Unlock()
	if err := cached.Check(); err != nil {
		t.Error(err)
	}
	used := cached.Used()
	for _, a := range used {
		if !netip.MustParsePrefix("10.64.1.0/24").Contains(a.Addr) {
			t.Errorf("a pod has %s", a.Addr)
		}
	}
	if p := n.status().Problem; len(used) != pods || p != "" {
		t.Errorf("%d pods have addresses, want %d; problem %q", len(used), pods, p)
	}
}

func TestPodsHaveAddressesOfRangesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := withRanges(t)
		defer n.stop()
		n.usesRanges(t, 12)
		had := n.total()
		for _, key := range n.keys()[4:] {
			n.del(key)
		}
		sleep(time.Hour)
		if n.usesRanges(t, 4); n.total() >= had {
			t.Errorf("of %d addresses none was given back", had)
		}
	})
}

// The cache may be of before the cloud had such ranges there.
func TestTheCacheLearnsRangesForPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := withRanges(t)
		n.stop()
		for _, key := range n.keys() {
			n.del(key)
		}
		n.mu.Lock()
		for i := range n.cached.ENIs {
			n.cached.ENIs[i].Pods = nil
		}
		n.cached.Addresses = nil
		n.mu.Unlock()
		n.start(-1, false)
		defer n.stop()
		for range 12 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		n.usesRanges(t, 12)
	})
}
