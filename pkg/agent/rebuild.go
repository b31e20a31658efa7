package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// rebuild makes the cache anew from the cloud and the kernel: at the first start,
// after a reboot, and when it is damaged. Used addresses keep their owners.
func (a *Agent) rebuild(ctx context.Context, old *ipam.State, why error, now time.Duration) error {
	reason := a.whyUnusable(old, why)
	if !a.view.known || a.backoffs.active(of(rebuilds), now) {
		return nil
	}
	err := a.build(ctx, now)
	if err != nil {
		a.backOff(of(rebuilds), err, now)
		return fmt.Errorf("build the node cache: %w", err)
	}
	a.backoffs.clear(of(rebuilds))
	a.steps++
	a.Log.Info("node cache built", "enis", len(a.view.enis), "reason", reason)
	a.Events.Repaired("cache", 1)
	a.resyncAt, a.compareDue, a.restarted, a.rebuilt = now, true, false, true
	a.unsaved = true // the memory stands beside the cache, and may have gone with it
	return nil
}

// whyUnusable says in a few words why the cache must be built anew.
func (a *Agent) whyUnusable(old *ipam.State, err error) string {
	if err == nil {
		return fmt.Sprintf("node cache has %d damaged records", len(old.Damaged))
	}
	for _, kind := range []error{nodecache.ErrMissing, nodecache.ErrBoot, nodecache.ErrVersion} {
		if errors.Is(err, kind) {
			return kind.Error() // the rest of it is meant for nodes without an agent
		}
	}
	if damage, is := errors.AsType[*nodecache.DamageError](err); is {
		return damage.Err.Error() // the same
	}
	return err.Error()
}

func (a *Agent) build(ctx context.Context, now time.Duration) error {
	sv, err := a.readBasis(ctx, now)
	if err != nil {
		return err
	}
	old, err := a.read(ctx)
	if err != nil && !a.Unusable(err) {
		return err
	}
	next, err := a.merge(sv, old, now)
	if err != nil {
		return err
	}
	broken, err := a.growKernel(ctx, next)
	if err != nil {
		return err
	}
	for _, addr := range slices.SortedFunc(maps.Keys(sv.owners), netip.Addr.Compare) {
		if !slices.ContainsFunc(next.Addresses, func(line eni.Address) bool { return line.Addr == addr }) {
			o := sv.owners[addr]
			a.Log.Warn("pod has an address that the cloud does not show", "address", addr, "pod", o.PodName())
		}
	}
	// Merged once more with the lock held: an ADD or DEL may have changed a damaged cache since it was read.
	err = a.Cache.Replace(ctx, func(s *ipam.State, _ error) (merged *ipam.State, err error) {
		if merged, err = a.merge(sv, s, now); err == nil {
			next, err = merged, withoutBroken(merged, s, broken)
		}
		return merged, err
	})
	if err == nil {
		a.endReleases(next)
		for _, line := range next.HeldAddresses() {
			a.tellHeld([]netip.Addr{line.Addr}, map[netip.Addr]string{line.Addr: line.HeldBy})
		}
	}
	return err
}

// wrongInstanceError says that none of the instance's ENIs has a link on this node.
type wrongInstanceError struct{ error }

// basis is what a cache can be made of without an old one.
type basis struct {
	want   ipam.State               // from the cloud, all addresses free
	owners map[netip.Addr]eni.Owner // from the kernel
	kernel netconf.Occupancy
}

func (a *Agent) readBasis(ctx context.Context, now time.Duration) (sv basis, err error) {
	links, err := a.Kernel.Links(ctx)
	if err != nil {
		return sv, err
	}
	want, waiting := a.shownState(links, now)
	if len(want.ENIs) == 0 || want.ENIs[0].Index != 0 {
		err := fmt.Errorf("the node's primary ENI is not there: of the cloud's %d ENIs these have no link here: %s; is this the node's network namespace, and node its name?",
			len(a.view.enis), strings.Join(waiting, ", "))
		if len(want.ENIs) == 0 {
			err = &wrongInstanceError{err}
		}
		return sv, err
	}
	sv.want = want
	sv.kernel, err = a.Kernel.Occupancy(ctx)
	sv.owners = sv.kernel.Owners(&sv.want)
	// What is on an ENI below the first one for pods is others', but for what pods have from earlier.
	sv.want.Addresses = slices.DeleteFunc(sv.want.Addresses, func(line eni.Address) bool {
		_, pods := sv.owners[line.Addr]
		return line.ENI < a.firstIndex() && !pods
	})
	return sv, err
}

// merge makes the new cache from its basis and what the old one knows.
func (a *Agent) merge(sv basis, old *ipam.State, now time.Duration) (*ipam.State, error) {
	next, err := anew(sv.want, old, sv.owners, now)
	if err == nil {
		next.StartRelease(append(a.goingBack(next), a.onTopologies(next, now)...), now)
		next.Distrust(old, now)
		next.MarkHeld(sv.kernel.Held(next), now)
	}
	return next, err
}

// goingBack returns the addresses of a new cache that the cloud may take at any
// moment because it was asked to.
func (a *Agent) goingBack(cached *ipam.State) []netip.Addr {
	var addrs []netip.Addr
	id := ids(cached)
	for _, line := range cached.Addresses {
		if a.supply.goesBack(line.Addr) || a.mem.isLeaving(id[line.ENI]) {
			addrs = append(addrs, line.Addr)
		}
	}
	return addrs
}

// shownState is the cache with all that the cloud's answer shows. ENIs whose link is not
// there yet come later.
func (a *Agent) shownState(links map[string]eni.Interface, now time.Duration) (want ipam.State, waiting []string) {
	want.Settings = a.settings()
	f, b, at := facts{}, a.belief(now), a.view.places()
	empty := &ipam.State{}
	for _, nic := range a.view.enis {
		index, ok := f.place(b, empty, links, nic.ID)
		if !ok {
			continue
		}
		for _, addr := range nic.Addresses {
			if at[addr] == nic.ID { // else another ENI has it by now
				want.Addresses = append(want.Addresses, eni.Address{Addr: addr, ENI: index})
			}
		}
	}
	want.ENIs = f.enis
	return want, f.waiting
}
