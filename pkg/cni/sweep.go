package cni

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// GC frees what the network has beyond the runtime's list of attachments. Without a list
// it frees only stale allocations. It never touches other networks that share the node's
// pool. It goes on after errors.
func (p *Plugin) GC(ctx context.Context, request Request) error {
	kernel, err := host.New()
	if err != nil {
		return err
	}
	defer kernel.Close()
	name := request.Conf.Name
	if !request.Conf.HasValid {
		_, err := p.sweepStale(ctx, kernel, func(o eni.Owner) bool { return o.Network == name })
		return err
	}
	valid := map[types.GCAttachment]bool{}
	for _, v := range request.Conf.Valid {
		valid[v] = true
	}
	gone := func(key eni.Key) bool {
		return key.Network == name && !valid[types.GCAttachment{ContainerID: key.Container, IfName: key.IfName}]
	}
	_, err = p.sweep(ctx, kernel, func(a eni.Address) (bool, error) { return gone(a.Owner.Key), nil })
	return errors.Join(err, p.removeLeftovers(ctx, kernel, gone))
}

// removeLeftovers removes links, host ports and limits of attachments that gone picks and
// that the node state does not know.
func (p *Plugin) removeLeftovers(ctx context.Context, kernel *host.Host, gone func(eni.Key) bool) error {
	// The kernel is read before the node state: an ADD writes the node state first, so an
	// attachment whose link is there is in the node state by the time that is read.
	pods, err := kernel.PodLinks()
	if err != nil {
		return err
	}
	extras, err := p.extrasKeys(ctx, kernel)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	var settings ipam.Settings
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		settings = state.Settings
		for _, a := range state.Used() {
			known[netconf.HostDevice(a.Owner.Key)] = true
		}
		return nil
	})
	if err != nil && !nodecache.Unusable(err) {
		return err
	}
	links := map[eni.Key]host.PodLink{}
	for _, pod := range pods {
		links[pod.Owner.Key] = pod
		extras = append(extras, pod.Owner.Key)
	}
	var errs []error
	for _, key := range extras {
		if gone(key) && !known[netconf.HostDevice(key)] {
			errs = append(errs, p.removeLeftoversOf(ctx, kernel, settings, key, links[key]))
		}
	}
	return errors.Join(errs...)
}

// removeLeftoversOf removes what an attachment has that the node state did not know: its ports,
// limits and the link that was seen before the node state. One that has been added since
// keeps all of it.
func (p *Plugin) removeLeftoversOf(ctx context.Context, kernel *host.Host, settings ipam.Settings, key eni.Key, link host.PodLink) error {
	if held, _, err := p.leaseOf(ctx, key); err == nil && len(held.Addresses) > 0 {
		return nil
	}
	var rules []netconf.Rule
	var addrs []eni.Address
	for _, a := range link.Addrs {
		addrs = append(addrs, eni.Address{Addr: a, State: eni.Used, Owner: &link.Owner})
		rules = append(rules, netconf.Rule{Priority: netconf.PrioritySource, IPv6: a.Is6(), From: netip.PrefixFrom(a, a.BitLen())})
	}
	return errors.Join(p.removeExtras(ctx, kernel, settings, key, addrs), kernel.DelPodAt(key, link.Index, rules))
}

// Reclaim frees the stale allocations of all networks whose owner which picks, and returns
// them.
func (p *Plugin) Reclaim(ctx context.Context, which func(eni.Owner) bool) ([]eni.Address, error) {
	kernel, err := host.New()
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	return p.sweepStale(ctx, kernel, which)
}

// sweepStale is sweep for the owners that which picks and that are provably gone.
func (p *Plugin) sweepStale(ctx context.Context, kernel *host.Host, which func(eni.Owner) bool) ([]eni.Address, error) {
	return p.sweep(ctx, kernel, func(a eni.Address) (bool, error) {
		is, err := ownerGone(kernel, a)
		return err == nil && is && which(*a.Owner), err
	})
}

// anyOwner picks every owner.
func anyOwner(eni.Owner) bool { return true }

// sweep frees the used addresses that gone picks: it cleans the kernel for each, then frees
// those that are clean in one update. It goes on after errors and returns them all.
//
// Meanwhile the runtime may end such an attachment itself and add it again, and another pod
// may get the address: what is new must stay. So a link is removed by its index, which is read
// before the node state is compared again, and rules that a new owner of an address needs are
// put back.
func (p *Plugin) sweep(ctx context.Context, kernel *host.Host, gone func(eni.Address) (bool, error)) ([]eni.Address, error) {
	picked, errs, err := p.pickGone(ctx, kernel, gone)
	if err != nil || len(picked) == 0 {
		return nil, errors.Join(append(errs, err)...)
	}
	same, settings, err := p.unchanged(ctx, picked)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	cleared := map[netip.Addr]eni.Address{}
	for _, r := range same {
		a := r.Address
		if err := errors.Join(p.removeStaleExtras(ctx, kernel, settings, a), kernel.DelPodAt(a.Owner.Key, r.link, sourceRules(settings, []eni.Address{a}))); err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", a.Addr, a.Owner.PodName(), err))
			continue
		}
		cleared[a.Addr] = a
	}
	var released, others []eni.Address
	err = p.Cache.Update(ctx, func(state *ipam.State) error {
		others = nil
		for _, a := range state.Used() {
			if before, ok := cleared[a.Addr]; ok && !sameAttachment(a, before) {
				others = append(others, a)
			}
		}
		released = state.FreeIf(func(a eni.Address) bool {
			before, ok := cleared[a.Addr]
			return ok && sameAttachment(a, before)
		}, p.Now())
		return nil
	})
	for _, a := range released {
		p.Log.Info("reclaimed", "address", a.Addr, "key", a.Owner.Key.String(), "netns", a.Owner.Netns)
	}
	return released, errors.Join(append(errs, err, kernel.AddRules(sourceRules(settings, others)))...)
}

// linkedAddress is a used address of the node state with the index of its owner's link when
// it was picked, 0 for no link.
type linkedAddress struct {
	eni.Address
	link int
}

// pickGone returns the used addresses that gone picks; errs are those of single addresses.
func (p *Plugin) pickGone(ctx context.Context, kernel *host.Host, gone func(eni.Address) (bool, error)) (picked []linkedAddress, errs []error, err error) {
	var used []eni.Address
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		used = state.Used()
		return nil
	})
	for _, a := range used {
		is, err := gone(a)
		link := 0
		if err == nil && is {
			link, err = kernel.LinkIndex(a.Owner.Key)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", a.Addr, a.Owner.PodName(), err))
		} else if is {
			picked = append(picked, linkedAddress{a, link})
		}
	}
	return picked, errs, err
}

// unchanged returns those of the addresses that have the same owner still.
func (p *Plugin) unchanged(ctx context.Context, picked []linkedAddress) (same []linkedAddress, settings ipam.Settings, err error) {
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		now := map[netip.Addr]eni.Address{}
		for _, a := range state.Used() {
			now[a.Addr] = a
		}
		same, settings = nil, state.Settings
		for _, r := range picked {
			if a, used := now[r.Addr]; used && sameAttachment(a, r.Address) {
				same = append(same, r)
			}
		}
		return nil
	})
	return same, settings, err
}

// sameAttachment tells whether two used addresses are one attachment's. Its key alone does
// not tell: it may be in use again, even for the same sandbox, but not since the same time.
func sameAttachment(a, b eni.Address) bool { return *a.Owner == *b.Owner && a.Since == b.Since }
