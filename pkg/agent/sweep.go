package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// reclaim takes back the addresses of sandboxes that were found dead twice, long
// enough apart for a DEL to have come.
func (a *Agent) reclaim(ctx context.Context, now time.Duration) error {
	dead := since[eni.Owner]{}
	released, err := a.Stale.Reclaim(ctx, func(o eni.Owner) bool {
		first := a.doubts.dead.of(o, now)
		dead[o] = first
		return first < now && now-first >= a.conf.OrphanAge
	})
	a.doubts.dead = dead
	for _, r := range released {
		a.steps++
		a.Log.Info("reclaim", "address", r.Addr, "pod", r.Owner.PodName(), "reason", fmt.Sprintf("its sandbox is gone since %s at least and no DEL came", (now-a.doubts.dead[*r.Owner]).Round(time.Second)))
		delete(a.doubts.dead, *r.Owner)
	}
	a.Events.Repaired("orphan", len(released))
	return err
}

// sweepLeaks deletes ENIs of ours that are not attached: what a crash in the middle
// of making one left. Two describes must have shown them so, and what counts is since when
// they are: a person may have detached one for a while. One whose addresses pods have stays
// for as long as they do.
func (a *Agent) sweepLeaks(ctx context.Context, now time.Duration) error {
	for _, nic := range a.view.enis {
		first, leaked := a.doubts.leaks[nic.ID]
		if !leaked || a.doubts.strays.has(nic.ID) || first >= a.view.start || a.backoffs.active(releasesOf(nic.ID), now) {
			continue
		}
		age := a.view.start - first
		if age < a.conf.LeakAge {
			continue
		}
		used, err := a.hasPods(ctx, nic)
		if err != nil {
			return fmt.Errorf("look for pods that have addresses of ENI %s, which is attached nowhere: %w", nic.ID, err)
		}
		if !used && a.deleteENI(ctx, nic.ID, now) {
			a.steps++
			a.Log.Info("delete", "eni", nic.ID, "reason", fmt.Sprintf("it was made for this node and is attached nowhere since %s", age.Round(time.Second)))
			a.Events.Repaired("leak", 1)
		}
	}
	return nil
}

// hasPods tells whether pods have addresses of the ENI, as far as the kernel knows.
func (a *Agent) hasPods(ctx context.Context, nic cloud.Interface) (bool, error) {
	o, err := a.Kernel.Occupancy(ctx)
	if err != nil {
		return false, err
	}
	var all ipam.State
	for _, addr := range nic.Addresses {
		all.Addresses = append(all.Addresses, eni.Address{Addr: addr})
	}
	owners := o.Owners(&all) // also of other addresses
	return slices.ContainsFunc(nic.Addresses, func(addr netip.Addr) bool {
		_, owned := owners[addr]
		return owned
	}), nil
}
