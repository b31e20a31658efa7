package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// reclaim takes back the addresses of sandboxes that were found dead twice, long
// enough apart for a DEL to have come.
func (a *Agent) reclaim(ctx context.Context, now time.Duration) error {
	dead := map[eni.Owner]time.Duration{}
	released, err := a.Orphans.Reclaim(ctx, func(o eni.Owner) bool {
		first := since(a.dead, o, now)
		dead[o] = first
		return first < now && now-first >= a.conf.OrphanAge
	})
	a.dead = dead
	for _, r := range released {
		a.steps++
		a.Log.Info("reclaim", "address", r.Addr, "pod", r.Owner.PodName(), "reason", fmt.Sprintf("its sandbox is gone since %s at least and no DEL came", (now-a.dead[*r.Owner]).Round(time.Second)))
		delete(a.dead, *r.Owner)
	}
	a.Events.Repaired("orphan", len(released))
	return err
}

// sweepLeaks deletes ENIs of ours that are not attached: what a crash in the middle
// of making one left. Two describes must have shown them so.
func (a *Agent) sweepLeaks(ctx context.Context, now time.Duration) {
	for _, nic := range a.view.enis {
		first, leaked := a.leaks[nic.ID]
		_, inBook := a.strays[nic.ID]
		if !leaked || inBook || first >= a.view.start || a.holds.active(eniKey(nic.ID), now) {
			continue
		}
		age := a.view.start - first
		if !nic.Created.IsZero() {
			age = a.Wall().Sub(nic.Created)
		}
		if age >= a.conf.LeakAge && a.deleteENI(ctx, nic.ID, now) {
			a.steps++
			a.Log.Info("delete", "eni", nic.ID, "reason", fmt.Sprintf("it was made for this node %s ago and is not attached", age.Round(time.Second)))
			a.Events.Repaired("leak", 1)
		}
	}
}
