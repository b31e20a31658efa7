package agent

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/ipam"
)

// rangedAnew is ranged with other ranges from some time on.
type rangedAnew struct {
	ranged
	pods atomic.Pointer[func([]netip.Prefix) []netip.Prefix]
}

// tells changes the ranges that the driver tells from now on; nil leaves them.
func (d *rangedAnew) tells(pods func([]netip.Prefix) []netip.Prefix) {
	if pods != nil {
		d.pods.Store(&pods)
	}
}

func (d *rangedAnew) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	list, err := d.ranged.Subnets(ctx, f)
	for i := range list {
		if pods := d.pods.Load(); pods != nil {
			list[i].Pods = (*pods)(list[i].Pods)
		}
	}
	return list, err
}

func withRangesAnew(t *testing.T) (*world, *testNode, *rangedAnew) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	conf := testConfig("n1")
	conf.Settings.VPC = append(conf.Settings.VPC, netip.MustParsePrefix("10.64.0.0/16"), netip.MustParsePrefix("10.65.0.0/16"))
	n, d := w.addNode(conf, sim.NodeSpec{Limits: smallENIs, Subnet: "subnet-a"}), &rangedAnew{}
	n.over = func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }
	n.start(-1, false)
	for range 6 {
		_ = n.add()
	}
	n.all(t, 5*time.Minute)
	return w, n, d
}

// The cloud tells one more range, with host bits, as some tell what a person typed. It can't be
// right, and the rest of the node must go on growing.
func TestARangeWithHostBitsStopsNoGrowth(t *testing.T) {
	for _, more := range []string{"10.65.1.0/24", "10.65.1.7/24"} {
		t.Run(more, func(t *testing.T) { growsWith(t, netip.MustParsePrefix(more)) })
	}
}

func growsWith(t *testing.T, more netip.Prefix) {
	synctest.Test(t, func(t *testing.T) {
		_, n, d := withRangesAnew(t)
		defer n.stop()
		d.tells(func(p []netip.Prefix) []netip.Prefix { return append(p, more) })
		sleep(5 * time.Minute)
		for range 15 {
			_ = n.add()
		}
		n.all(t, 10*time.Minute)
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, nic := range n.cached.ENIs {
			if err := nic.Validate(); err != nil {
				t.Errorf("the cache has an ENI that no reader of the node cache takes: %v", err)
			}
		}
	})
}

// A range is taken from the subnet while pods have addresses of it. When a record of the node cache
// is damaged after that, the cache has to be built anew all the same.
func TestARangeThatIsGoneStopsNoRebuild(t *testing.T) {
	t.Run("it stays", func(t *testing.T) { rebuildsWith(t, nil) })
	t.Run("it is gone", func(t *testing.T) {
		rebuildsWith(t, func([]netip.Prefix) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.65.1.0/24")} })
	})
}

func rebuildsWith(t *testing.T, pods func([]netip.Prefix) []netip.Prefix) {
	synctest.Test(t, func(t *testing.T) {
		w, n, d := withRangesAnew(t)
		defer n.stop()
		d.tells(pods)
		n.mu.Lock()
		for _, pod := range n.pods {
			for _, a := range pod.addrs {
				w.taken[a] = true
			}
		}
		n.mu.Unlock()
		sleep(10 * time.Minute)
		n.mu.Lock()
		n.cached.Damaged = append(n.cached.Damaged, ipam.Damage{Cause: "torn"})
		n.wake()
		n.mu.Unlock()
		n.isRebuilt(t)
	})
}

// A subnet may have hundreds of ranges, and the node cache has a line for an ENI.
func TestTheCacheHoldsJustTheRangesThatAddressesLieIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n, d := withRangesAnew(t)
		defer n.stop()
		d.tells(func(p []netip.Prefix) []netip.Prefix {
			for k := range 170 {
				p = append(p, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 65, byte(k), 0}), 24))
			}
			return p
		})
		sleep(10 * time.Minute)
		for range 15 {
			_ = n.add()
		}
		n.all(t, 10*time.Minute)
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, nic := range n.cached.ENIs {
			if len(nic.Pods) > 1 {
				t.Errorf("the cache has ENI %s with ranges %v", nic.ID, nic.Pods)
			}
		}
	})
}
