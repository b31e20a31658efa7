package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
)

// doStep does a step, or begins it. A step that may not begin now is planned again
// by the next tick.
func (a *Agent) doStep(ctx context.Context, s pool.Step, now time.Duration) (err error) {
	if a.mem.isLeaving(s.ENI) {
		if s.Do == pool.Release || s.Do == pool.Delete {
			return nil // finishReleases goes on with it
		}
		if err := a.keepENI(s.ENI); err != nil {
			a.Events.Step(toldStep(s, err))
			return fmt.Errorf("%s: %w", s.Do, err)
		}
	}
	done := false
	switch s.Do {
	case pool.Restore:
		done, err = a.cancelReleases(ctx, s, now)
	case pool.Assign:
		done = a.assign(ctx, s.ENI, s.Subnet, s.Family, s.Count, now)
	case pool.Create:
		done, err = a.startCreate(ctx, s, now)
	case pool.Release:
		done, err = a.startRelease(ctx, s, now)
	case pool.Delete:
		if done, err = a.startRelease(ctx, s, now); err == nil {
			left := false
			left, err = a.startDelete(ctx, s)
			done = done || left
		}
	}
	if err != nil {
		a.Events.Step(toldStep(s, err))
		return fmt.Errorf("%s: %w", s.Do, err)
	}
	if !done {
		a.hungry = a.hungry || !a.refuses(grows, now) // releases begin in the cache
		return nil
	}
	a.steps++
	a.Events.Step(toldStep(s, nil))
	if a.isNews(s) {
		a.Log.Info(s.Do.String(), a.about(s)...)
	}
	return nil
}

// toldStep is a step as people and metrics are told of it. err is why it could not be begun.
func toldStep(s pool.Step, err error) status.Step {
	told := status.Step{Action: s.Do.String(), Object: cmp.Or(s.ENI, s.Subnet), Count: cmp.Or(len(s.Addrs), s.Count), Reason: s.Reason}
	if err != nil {
		told.Failed = err.Error()
	}
	return told
}

// about is what the log says of a step.
func (a *Agent) about(s pool.Step) []any {
	var args []any
	if s.ENI != "" {
		args = append(args, "eni", s.ENI)
	} else {
		args = append(args, "subnet", s.Subnet)
	}
	switch {
	case len(s.Addrs) > 0:
		args = append(args, "count", len(s.Addrs), "addresses", brief(s.Addrs))
	case s.Count > 0:
		args = append(args, "count", s.Count)
	}
	return append(args, "reason", s.Reason)
}

// cancelReleases takes back releases that the cloud has not heard of. The kernel comes
// first, as for every address that may be handed out.
func (a *Agent) cancelReleases(ctx context.Context, s pool.Step, now time.Duration) (bool, error) {
	cached, err := a.read(ctx)
	if err != nil {
		return false, err
	}
	next := cached.Clone()
	if len(next.CancelRelease(s.Addrs, now)) == 0 {
		return false, nil
	}
	good, err := a.growKernelFor(ctx, next, s.Addrs)
	if err != nil {
		return false, err
	}
	return true, a.Cache.Update(ctx, func(s2 *ipam.State) error {
		s2.CancelRelease(good, now)
		return nil
	})
}

// startCreate writes the intent down and asks for the ENI.
func (a *Agent) startCreate(ctx context.Context, s pool.Step, now time.Duration) (bool, error) {
	if !a.mayCall(grows, now) {
		return false, nil
	}
	c := create{Token: fmt.Sprintf("enipool-%016x%016x", a.Rand.Uint64(), a.Rand.Uint64()), Subnet: s.Subnet, Slots: s.Count,
		V4: s.V4, V6: s.V6, Reason: s.Reason, unheard: true}
	a.mem.Creates = append(a.mem.Creates, c)
	if err := a.remember(); err != nil {
		a.mem.Creates = a.mem.Creates[:len(a.mem.Creates)-1]
		return false, err
	}
	a.createENI(ctx, c, now)
	return true, nil
}

// startRelease marks free addresses as on their way back. A pod may have been faster.
func (a *Agent) startRelease(ctx context.Context, s pool.Step, now time.Duration) (bool, error) {
	if len(s.Addrs) == 0 {
		return false, nil
	}
	// The cloud must not take from others what they have taken since it was looked at.
	cached, err := a.read(ctx)
	if err == nil {
		err = a.lookForOthers(ctx, cached, now)
	}
	if err != nil {
		return false, err
	}
	var drained []netip.Addr
	err = a.Cache.Update(ctx, func(b *ipam.State) error {
		going := s.Addrs
		if s.Index >= a.firstIndex() { // else they go one by one, see vacate
			going = a.view.drainable(b, going, now)
		}
		drained = b.StartRelease(going, now)
		return nil
	})
	a.unsynced = a.unsynced || len(drained) > 0
	return len(drained) > 0, err
}

// startDelete notes that an ENI is to be deleted if all of its addresses are on their way back.
// That is written down first: a deletion may have its effect after a crash.
func (a *Agent) startDelete(ctx context.Context, s pool.Step) (bool, error) {
	cached, err := a.read(ctx)
	if err != nil || inUse(cached, s.Index) {
		return false, err
	}
	a.mem.Leaving[s.ENI] = false
	if err := a.remember(); err != nil {
		delete(a.mem.Leaving, s.ENI)
		return false, err
	}
	a.unsynced = true
	return true, nil
}

// endMade ends intents whose ENIs are in the node cache: they were made, and an earlier agent
// could not write that down.
func (a *Agent) endMade(cached *ipam.State) {
	for _, c := range slices.Clone(a.mem.Creates) {
		if a.calls[intentKey(c.Token)] == nil && slices.ContainsFunc(a.view.enis, func(nic cloud.Interface) bool {
			return nic.Token == c.Token && nic.Index >= 0 && hasENI(cached, nic.ID)
		}) {
			a.endIntent(c.Token)
		}
	}
}

// endIntent forgets an intent, and what its failures were.
func (a *Agent) endIntent(token string) {
	a.mem.Creates = slices.DeleteFunc(a.mem.Creates, func(c create) bool { return c.Token == token })
	delete(a.doubts.barren, token)
	a.backoffs.clear(intentOf(token))
	a.unsaved = true
}

// retryCreates tries again to make the ENIs that were begun. What an earlier agent began may be made:
// that shows first.
func (a *Agent) retryCreates(ctx context.Context, now time.Duration) {
	if !a.view.known {
		return
	}
	enough := a.demand.owned + a.coming() // without the ENIs that are being made
	for _, c := range a.mem.Creates {
		key := intentKey(c.Token)
		if c.unheard && a.calls[key] == nil && a.pressed(now) && enough >= max(a.demand.total, 1) {
			continue
		}
		enough += c.Slots
		started := a.createENI(ctx, c, now)
		a.hungry = a.hungry || !started && a.calls[key] == nil && !a.backoffs.active(intentOf(c.Token), now) && !a.refuses(grows, now)
	}
}

// finishReleases finishes releases: the kernel forgets the addresses, then the cloud is
// asked to take them.
func (a *Agent) finishReleases(ctx context.Context, cached *ipam.State, now time.Duration) (err error) {
	back := a.releasesByENI(cached, now)
	if len(back) == 0 && len(a.mem.Leaving) == 0 {
		if a.unsynced && !a.backoffs.active(of(compares), now) {
			return a.sync(ctx, now, comparedForCache)
		}
		return nil
	}
	// Kernel before cloud: what the cloud takes it may give to another node at once, and this one
	// must not route that as a pod's of its own by then. A link that can't be set up is no cause to wait.
	var broken error
	if a.unsynced {
		if a.backoffs.active(of(compares), now) {
			return nil
		}
		if broken = a.sync(ctx, now, comparedForCache); a.unsynced {
			return broken
		}
	}
	for _, nic := range cached.ENIs {
		started := true
		switch {
		case a.backoffs.active(releasesOf(nic.ID), now):
		case a.mem.isLeaving(nic.ID):
			started = a.deleteENI(ctx, nic.ID, now)
		case len(back[nic.ID]) > 0:
			if started, err = a.unassign(ctx, nic.ID, back[nic.ID], now); err != nil {
				return errors.Join(broken, err)
			}
		}
		a.hungry = a.hungry || !started && !a.isOn(nic.ID) && !a.refuses(gives, now)
	}
	return broken
}

// releasesByENI returns the addresses that the cloud is to take back, by ENI.
func (a *Agent) releasesByENI(cached *ipam.State, now time.Duration) map[string][]netip.Addr {
	back := map[string][]netip.Addr{}
	if !a.view.known || cached.Count(now, nil).Releasing == 0 {
		return back
	}
	at, id := a.view.places(), ids(cached)
	var all []netip.Addr
	for _, line := range cached.Addresses {
		if line.State == eni.Releasing && at[line.Addr] == id[line.ENI] {
			all = append(all, line.Addr)
		}
	}
	for _, addr := range a.view.returnable(cached, all) {
		back[at[addr]] = append(back[at[addr]], addr)
	}
	return back
}

// mayCall tells whether the cloud may be called for that now at all.
func (a *Agent) mayCall(c class, now time.Duration) bool {
	return a.hasPlace(c, a.conf.Cloud.Concurrent) && !a.refuses(c, now)
}

// refuses tells whether the cloud is left alone with that.
func (a *Agent) refuses(c class, now time.Duration) bool { return a.backoffs.active(of(c), now) }
