package agent

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// lateIPv6 is a driver of a cloud whose ENIs have no IPv6 before somebody gives them some.
type lateIPv6 struct {
	driver.Driver
	has *bool
}

func (d lateIPv6) cut(i driver.Interface) driver.Interface {
	if !*d.has {
		i.V6, i.Singles = netip.Addr{}, slices.DeleteFunc(slices.Clone(i.Singles), netip.Addr.Is6)
	}
	return i
}

func (d lateIPv6) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	list, err := d.Driver.Interfaces(ctx, f)
	for k := range list {
		list[k] = d.cut(list[k])
	}
	return list, err
}

func (d lateIPv6) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	made, err := d.Driver.Create(ctx, c)
	return d.cut(made), err
}

// withLateIPv6 is a node whose pods and ENIs have IPv4 alone, until has is true.
func withLateIPv6(t *testing.T) (n *testNode, has *bool) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n, has = w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 9, V6: 9}, Subnet: "subnet-a"}), new(bool)
	n.over = func(inner driver.Driver) driver.Driver { return lateIPv6{inner, has} }
	n.start(-1, false)
	for range 10 {
		_ = n.add()
	}
	n.all(t, 5*time.Minute)
	n.stop()
	return n, has
}

// The configuration gets IPv6 on a node whose ENIs had none when the cache took them in.
func TestENIsThatGetIPv6LaterServePodsOfBothFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, has := withLateIPv6(t)
		*has, n.conf.Settings.Families = true, []eni.Family{eni.IPv4, eni.IPv6}
		n.start(-1, false)
		defer n.stop()
		sleep(10 * time.Minute)
		for range 10 {
			_ = n.add()
		}
		n.all(t, 10*time.Minute)
		if err := n.w.check(); err != nil {
			t.Error(err)
		}
	})
}

// Somebody gives the node's own ENI IPv6 addresses that enipool has no use for.
func TestIPv6AddressesOfOthersOnANodeWithoutStopNoGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, has := withLateIPv6(t)
		*has = true
		own := n.attached()[0].ID
		if err := n.w.account.Update(func(tx *sim.Tx) error {
			_, err := tx.Assign(own, sim.AddressRequest{CountV6: 2})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		n.start(-1, false)
		defer n.stop()
		sleep(10 * time.Minute)
		for range 10 {
			_ = n.add()
		}
		n.all(t, 10*time.Minute)
		if p := n.status().Problem; p != "" {
			t.Error(p)
		}
	})
}
