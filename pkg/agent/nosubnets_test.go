package agent

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
)

// noSubnets is a cloud that does not tell of subnets while it is set.
type noSubnets struct {
	driver.Driver
	is *atomic.Bool
}

func (d noSubnets) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	if d.is.Load() {
		return nil, isForbidden()
	}
	return d.Driver.Subnets(ctx, f)
}

// Somebody takes an address away while the cloud tells of ENIs and not of subnets. No pod gets that
// address, others come, and that the node may not ask is told.
func TestWithoutSubnetsWhatTheCloudTookIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		w, n := one(t, large, func(n *testNode) {
			n.over = func(d driver.Driver) driver.Driver { return noSubnets{d, &silent} }
		})
		defer n.stop()
		silent.Store(true)
		for range 4 {
			_ = n.add()
		}
		var victim netip.Addr
		n.mu.Lock()
		for _, line := range n.cached.Addresses {
			if line.State == eni.Free {
				victim = line.Addr
			}
		}
		n.mu.Unlock()
		if err := w.account.TakeAway(victim); err != nil {
			t.Fatal(err)
		}
		sleep(10 * time.Minute)
		for range 26 {
			_ = n.add()
		}
		n.all(t, 10*time.Minute)
		if err := w.check(); err != nil {
			t.Error(err)
		}
		if c := n.status().Causes; len(c) == 0 || c[0].Kind != "forbidden" {
			t.Errorf("the causes are %+v, want forbidden", c)
		}
	})
}

// fewSubnets is a cloud that tells of subnets so often.
type fewSubnets struct {
	driver.Driver
	left *atomic.Int32
}

func (d fewSubnets) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	if d.left.Add(-1) < 0 {
		return nil, isForbidden()
	}
	return d.Driver.Subnets(ctx, f)
}

// The cloud tells a node without a node cache of its ENIs and the subnets that they are in, and not what is left
// in subnets. Pods get what the ENIs have, and no more than that. As soon as the cloud tells, more comes.
func TestTheFirstDescribeWithoutSubnetsIsGoodForTheENIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int32
		left.Store(1000)
		w, n := one(t, large, func(n *testNode) {
			n.over = func(d driver.Driver) driver.Driver { return fewSubnets{d, &left} }
		})
		n.stop()
		left.Store(1)
		n.as = "another release"
		n.cached, n.cacheErr, n.memory, n.routed = nil, nodecache.ErrMissing, nil, map[netip.Addr]bool{}
		n.serial++
		n.start(-1, false)
		defer n.stop()
		sleep(time.Minute)
		has := n.total()
		if has != len(n.inCloud()) {
			t.Fatalf("the node cache has %d addresses, the ENIs have %d", has, len(n.inCloud()))
		}
		for range has {
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		_ = n.add()
		sleep(20 * time.Minute)
		if st := n.status(); n.retry() == 0 || st.Ready {
			t.Errorf("one pod more than the ENIs have addresses has one, or a node that can't have more is ready: %+v", st)
		}
		if c := n.status().Causes; len(c) == 0 || c[0].Kind != "forbidden" {
			t.Errorf("the causes are %+v, want forbidden", c)
		}
		left.Store(1000)
		n.all(t, 6*time.Minute)
		if err := w.check(); err != nil || !n.status().Ready {
			t.Errorf("%v; %+v", err, n.status())
		}
	})
}
