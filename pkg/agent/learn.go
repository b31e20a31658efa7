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
)

// learn brings the cache in step with the cloud and returns the new one.
func (a *Agent) learn(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error) {
	if a.compareDue {
		a.noteDoubts(cached)
		a.compareDue = false
	}
	if a.agreed(cached) {
		return cached, nil
	}
	a.view.recognize(cached, a.Cloud.Notes()) // the view may be newer than the last noteDoubts
	links, err := a.linksFor(ctx, cached)
	if err != nil {
		return cached, err
	}
	f := a.belief(now).compare(cached, links, now)
	a.links = a.links.await(f.waiting, now)
	a.view.agrees = f.none() && !f.refused && len(a.doubts.suspects)+len(a.doubts.strays) == 0
	a.lines, a.enis = len(cached.Addresses), len(cached.ENIs)
	errs := []error{a.noteLost(ctx, f, now)}
	grown, err := a.growCache(ctx, cached, f, now)
	errs = append(errs, err, a.shrinkCache(ctx, f))
	if grown || len(f.lost)+len(f.suspect)+len(f.found)+len(f.drop)+len(f.dropENI) > 0 {
		again, err := a.read(ctx)
		if err == nil {
			cached = again
			a.endReleases(cached)
		}
		errs = append(errs, err)
	}
	return cached, errors.Join(errs...)
}

// noteDoubts notes since when addresses and ENIs of the cache are not where they should
// be in the cloud's describes.
func (a *Agent) noteDoubts(cached *ipam.State) {
	a.view.recognize(cached, a.Cloud.Notes())
	a.doubts = a.doubts.sighted(&a.view, cached)
	a.endDeletions(cached)
}

// endDeletions forgets deletions of ENIs that neither the cloud nor the cache has any more: somebody else
// has done them. What a call may still have an effect on, or a lagging describe not show, stays.
func (a *Agent) endDeletions(cached *ipam.State) {
	for id := range a.mem.Leaving {
		if _, shown := a.view.eni(id); shown || hasENI(cached, id) || a.isOn(id) || a.doubts.unheard.has(id) && a.view.start < a.heardBy(id) {
			continue
		}
		delete(a.mem.Leaving, id)
		delete(a.doubts.unheard, id)
		a.unsaved = true
	}
}

// agreed tells whether the cache was compared with this view already and nothing
// was found: then it is not done again. Nobody but the agent changes which lines
// there are, and who does it by hand is found out with the next describe.
func (a *Agent) agreed(cached *ipam.State) bool {
	return a.view.agrees && a.isCompared(cached) && sameSettings(cached.Settings, a.settings())
}

// linksFor returns the node's links where an ENI of the cloud is not in the cache.
func (a *Agent) linksFor(ctx context.Context, cached *ipam.State) (map[string]eni.Interface, error) {
	for _, nic := range a.view.enis {
		if nic.Index >= 0 && !hasENI(cached, nic.ID) {
			return a.Kernel.Links(ctx)
		}
	}
	return nil, nil
}

// noteLost writes down what the cloud took away, gave back, or does not show now.
// These change lines and no layout.
func (a *Agent) noteLost(ctx context.Context, f facts, now time.Duration) error {
	if len(f.lost)+len(f.suspect)+len(f.found) == 0 {
		return nil
	}
	var lost, suspect, found []netip.Addr
	err := a.Cache.Update(ctx, func(s *ipam.State) error {
		lost, suspect, found = s.MarkLost(f.lost, now), s.StartRelease(f.suspect, now), s.UnmarkLost(f.found)
		return nil
	})
	if err != nil {
		return err
	}
	a.unsynced = a.unsynced || len(lost)+len(suspect) > 0
	a.logAddresses("quarantine", lost, "the cloud does not have them on this node any more")
	a.logAddresses("hold back", suspect, "the cloud's last answer did not show them")
	a.logAddresses("regain", found, "the cloud shows them again")
	a.Events.Repaired("lost", len(lost))
	return nil
}

// logAddresses logs a change of addresses with its reason.
func (a *Agent) logAddresses(what string, addrs []netip.Addr, reason string) {
	if len(addrs) > 0 {
		a.steps++
		a.Log.Info(what, "addresses", brief(addrs), "count", len(addrs), "reason", reason)
	}
}

// brief names the first few addresses.
func brief(addrs []netip.Addr) string {
	var names []string
	for i, addr := range addrs {
		if i == 3 {
			names = append(names, "...")
			break
		}
		names = append(names, addr.String())
	}
	return strings.Join(names, " ")
}

// growCache takes what the cloud has and the cache has not into kernel, then cache, and returns whether it
// took any.
func (a *Agent) growCache(ctx context.Context, cached *ipam.State, f facts, now time.Duration) (bool, error) {
	settings := !sameSettings(cached.Settings, a.settings())
	a.endAdoptions(f, cached, now)
	if len(f.enis) == 0 && len(f.addrs) == 0 && !settings {
		a.backoffs.clear(of(adopts)) // what could not be taken in is gone
		return false, nil
	}
	if a.backoffs.active(of(adopts), now) {
		return false, nil
	}
	refused, err := a.enlargeCache(ctx, f, now)
	if err != nil {
		a.backOff(of(adopts), err, now)
		return false, fmt.Errorf("take in new addresses: %w", err)
	}
	a.backoffs.clear(of(adopts))
	for _, id := range f.replace {
		a.gone, a.unsynced = cached, true
		a.Log.Info("forget", "eni", id, "reason", "the cloud took it away and another ENI has its place; pods keep the addresses they lost")
	}
	if settings {
		a.gone, a.unsynced = cached, true
		a.Log.Info("settings changed", "routing", a.conf.Settings.Routing.String(), "firewall", a.conf.Settings.Firewall.String(), "snat", a.conf.Settings.SNAT)
	}
	var errs []error
	for _, nic := range f.enis {
		if why := refused[nic.ID]; why != nil {
			a.backOff(adoptionOf(nic.ID), why, now)
			errs = append(errs, fmt.Errorf("take in an ENI: %w", why))
			continue
		}
		a.backoffs.clear(adoptionOf(nic.ID))
		a.steps++
		a.Log.Info("adopt", "eni", nic.ID, "device", nic.Device, "reason", "it is attached to the node")
	}
	for _, nic := range cached.ENIs {
		if why := refused[nic.ID]; why != nil {
			a.backOff(adoptionOf(nic.ID), why, now)
			errs = append(errs, fmt.Errorf("take in addresses of %s: %w", nic.ID, why))
		} else if len(f.addrs[nic.Index]) > 0 {
			a.backoffs.clear(adoptionOf(nic.ID))
		}
	}
	for _, index := range slices.Sorted(maps.Keys(f.addrs)) {
		a.logAddresses("add", f.addrs[index], "they are assigned")
	}
	return true, errors.Join(errs...)
}

// endAdoptions ends the failures to take in what ENIs bring that bring nothing any more.
func (a *Agent) endAdoptions(f facts, cached *ipam.State, now time.Duration) {
	at := map[string]int{}
	for _, nic := range slices.Concat(cached.ENIs, f.enis) {
		at[nic.ID] = nic.Index
	}
	for s, v := range a.backoffs {
		index, there := at[s.id]
		if s.class == adopts && s.kind == anENI && v.until <= now && there && len(f.addrs[index]) == 0 && hasENI(cached, s.id) {
			a.backoffs.clear(s)
		}
	}
}

// enlargeCache takes what is new into kernel and cache, but for ENIs that the cache refuses or whose links can't
// be set up: those it returns with the reason, and holds up no other for them.
func (a *Agent) enlargeCache(ctx context.Context, f facts, now time.Duration) (refused map[string]error, err error) {
	// What a pod of ours uses already can only be there after the cache lost it.
	o, err := a.Kernel.Occupancy(ctx)
	if err != nil {
		return nil, err
	}
	// An ADD writes the cache first: what it has set up by now is its own in the cache as it is now,
	// and would seem to be others' by an older one.
	cached, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	var fresh ipam.State
	for _, addrs := range f.addrs {
		for _, addr := range addrs {
			fresh.Addresses = append(fresh.Addresses, eni.Address{Addr: addr})
		}
	}
	owners := o.Owners(&fresh)
	var held []netip.Addr
	add := func(s *ipam.State) (*ipam.State, error) {
		s.Settings = a.settings()
		for _, id := range f.replace {
			if err := s.DropLost(id); err != nil {
				return nil, err
			}
		}
		refused = map[string]error{}
		for _, nic := range f.enis {
			if err := s.AddENI(nic); err != nil {
				refused[nic.ID] = err
				delete(f.addrs, nic.Index)
			}
		}
		for _, nic := range f.wider {
			s.WidenENI(nic)
		}
		for _, index := range slices.Sorted(maps.Keys(f.addrs)) {
			s.AddAddresses(index, f.addrs[index], owners, now)
		}
		s.StartRelease(a.onTopologies(s, now), now)
		held = s.MarkHeld(o.Held(s), now)
		return s, s.Check()
	}
	next, err := add(cached.Clone())
	if err != nil {
		return nil, err
	}
	broken, err := a.growKernel(ctx, next)
	if err != nil {
		return nil, err
	}
	leftOut := map[string]error{}
	for _, nic := range next.ENIs {
		if isNew := !hasENI(cached, nic.ID); broken[nic.Index] != nil && (isNew || len(f.addrs[nic.Index]) > 0) {
			leftOut[nic.ID] = broken[nic.Index]
			delete(f.addrs, nic.Index)
		}
	}
	f.enis = slices.DeleteFunc(slices.Clone(f.enis), func(nic eni.Interface) bool { return leftOut[nic.ID] != nil })
	err = a.Cache.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		return add(s)
	})
	if err == nil {
		a.tellHeld(held, o.Held(next))
	}
	maps.Copy(refused, leftOut)
	return refused, err
}

// shrinkCache takes out of the cache what the cloud has no more.
func (a *Agent) shrinkCache(ctx context.Context, f facts) error {
	if len(f.drop)+len(f.dropENI) == 0 {
		return nil
	}
	// A describe may still show them: that they went must outlive a crash. A call that has taken
	// them may not have returned yet, so that nothing else calls for it.
	if err := a.remember(); err != nil {
		return err
	}
	a.unsaved = false
	var dropped []netip.Addr
	var enis []string
	err := a.Cache.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		dropped, enis = s.DropReleased(f.drop), nil
		for _, id := range f.dropENI {
			if s.DropENI(id) == nil { // else a pod was faster: next time
				enis = append(enis, id)
			}
		}
		return s, nil
	})
	if err != nil {
		return err
	}
	a.unsynced = a.unsynced || len(enis) > 0
	for _, addr := range f.drop {
		delete(a.mem.Begun, addr)
		delete(a.doubts.suspects, addr)
	}
	for _, id := range enis {
		delete(a.doubts.strays, id)
		a.backoffs.clear(releasesOf(id))
		a.backoffs.clear(assignsTo(id))
		// Its deletion may have been done and the answer lost: nobody asks for it again.
		if _, shown := a.view.eni(id); !shown && a.mem.isLeaving(id) {
			delete(a.mem.Leaving, id)
			delete(a.doubts.unheard, id)
			a.unsaved = true
		}
		a.Log.Info("forget", "eni", id, "reason", "it is not attached to the node any more")
	}
	a.logAddresses("forget", dropped, "the cloud no longer has them")
	return nil
}

// settings are those of the configuration, with the blocks in which the cloud gives
// addresses: an ADD fills up one before it begins the next.
func (a *Agent) settings() ipam.Settings {
	s := a.conf.Settings
	s.V4Block, s.V6Block = a.view.limits.V4Block.Bits, a.view.limits.V6Block.Bits
	return s
}

func sameSettings(x, y ipam.Settings) bool {
	return x.Routing == y.Routing && x.Firewall == y.Firewall && x.SNAT == y.SNAT && x.MarkMask == y.MarkMask && x.PodsInMain == y.PodsInMain &&
		x.V4Block == y.V4Block && x.V6Block == y.V6Block && x.CoolDown == y.CoolDown && slices.Equal(x.VPC, y.VPC) && slices.Equal(x.Families, y.Families) &&
		slices.Equal(x.Gated, y.Gated)
}
