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
		for _, line := range n.book.Addresses {
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
