package agent

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// foreseen is a driver before whose describes of one ENI something happens in the account.
type foreseen struct {
	driver.Driver
	before func(id string)
}

func (d foreseen) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	if len(f.IDs) == 1 {
		d.before(f.IDs[0])
	}
	return d.Driver.Interfaces(ctx, f)
}

// Something on the node puts an address of its own on an ENI of ours that is about to go, and uses it.
func TestAnENIThatGetsAnAddressOfOthersBeforeItIsDeletedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := netip.MustParseAddr("10.0.1.200")
		w, n, d, _ := withOneENI(t, sim.NodeSpec{Limits: smallENIs})
		n.stop()
		var goes atomic.Bool
		n.over = func(inner driver.Driver) driver.Driver {
			d.Driver = inner
			return foreseen{d, func(id string) {
				if !goes.Load() {
					return
				}
				_ = w.account.Update(func(tx *sim.Tx) error { // it has it once
					i, err := tx.Interface(id)
					if err != nil || slices.Contains(i.V4, theirs) {
						return err
					}
					if room := i.V4[min(3, len(i.V4)):]; len(room) > 0 {
						if err := tx.Unassign(id, sim.Got{V4: room}); err != nil {
							return err
						}
					}
					_, err = tx.Assign(id, sim.AddressRequest{V4: []netip.Addr{theirs}})
					return err
				})
				n.mu.Lock()
				defer n.mu.Unlock()
				n.foreign = map[netip.Addr]string{theirs: "theirs"}
			}}
		}
		n.start(-1, false)
		defer n.stop()
		for range 8 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		for _, key := range n.keys() {
			n.del(key)
		}
		goes.Store(true)
		sleep(3 * time.Hour)
		n.mustStillHave(t, []netip.Addr{theirs})
		if held := n.heldAddrs(); !slices.Equal(held, []netip.Addr{theirs}) {
			t.Errorf("held are %v, want %s", held, theirs)
		}
	})
}
