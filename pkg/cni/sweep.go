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

// GC takes back what the network has beyond the runtime's list of attachments.
// Without a list only what is provably dead goes. Other networks that share the
// node's pool are left alone either way. It goes on after errors.
func (p *Plugin) GC(ctx context.Context, request Request) error {
	kernel, err := host.New()
	if err != nil {
		return err
	}
	defer kernel.Close()
	name := request.Conf.Name
	if !request.Conf.HasValid {
		_, err := p.sweepDead(ctx, kernel, func(o eni.Owner) bool { return o.Network == name })
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
	return errors.Join(err, p.removeOrphans(ctx, kernel, gone))
}

// removeOrphans removes links, host ports and limits of ours that gone picks and
// that the node state does not know.
func (p *Plugin) removeOrphans(ctx context.Context, kernel *host.Host, gone func(eni.Key) bool) error {
	// The kernel is read before the node state: an ADD writes the node state first, so the
	// link of one that is under way has its record by now.
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
			errs = append(errs, p.removeOrphan(ctx, kernel, settings, key, links[key]))
		}
	}
	return errors.Join(errs...)
}

// removeOrphan removes what an attachment has that the node state did not know: its ports,
// limits and the link that was seen before the node state. One that has been added since
// keeps all of it.
func (p *Plugin) removeOrphan(ctx context.Context, kernel *host.Host, settings ipam.Settings, key eni.Key, link host.PodLink) error {
	if held, _, err := p.held(ctx, key); err == nil && len(held.Addresses) > 0 {
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

// Reclaim releases the addresses of provably dead sandboxes, on all networks, and
// returns them. It asks which for the owner of each such address whether it shall go.
func (p *Plugin) Reclaim(ctx context.Context, which func(eni.Owner) bool) ([]eni.Address, error) {
	kernel, err := host.New()
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	return p.sweepDead(ctx, kernel, which)
}

// sweepDead is sweep for the provably dead among the owners that which picks.
func (p *Plugin) sweepDead(ctx context.Context, kernel *host.Host, which func(eni.Owner) bool) ([]eni.Address, error) {
	return p.sweep(ctx, kernel, func(a eni.Address) (bool, error) {
		is, err := ownerGone(kernel, a)
		return err == nil && is && which(*a.Owner), err
	})
}

// anyOwner picks every owner.
func anyOwner(eni.Owner) bool { return true }

// sweep removes the used addresses that gone picks: each one's kernel state
// first, then, in one update, the records of those that are clean. It goes on
// after errors and returns them all.
//
// Meanwhile the runtime may end such an attachment itself and add it again, and the
// address may go to another: what is new must stay. So a link is removed by an index
// that was read before its record was seen to be the same still, and rules that a new
// owner of an address needs are put back.
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
			if before, ok := cleared[a.Addr]; ok && !sameRecord(a, before) {
				others = append(others, a)
			}
		}
		released = state.FreeIf(func(a eni.Address) bool {
			before, ok := cleared[a.Addr]
			return ok && sameRecord(a, before)
		}, p.Now())
		return nil
	})
	for _, a := range released {
		p.Log.Info("reclaimed", "address", a.Addr, "key", a.Owner.Key.String(), "netns", a.Owner.Netns)
	}
	return released, errors.Join(append(errs, err, kernel.AddRules(sourceRules(settings, others)))...)
}

// record is an address of the node state with the owner's link at that time, 0 for none.
type record struct {
	eni.Address
	link int
}

// pickGone returns the records that gone picks. Errors of single ones don't keep the rest.
func (p *Plugin) pickGone(ctx context.Context, kernel *host.Host, gone func(eni.Address) (bool, error)) (picked []record, errs []error, err error) {
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
			picked = append(picked, record{a, link})
		}
	}
	return picked, errs, err
}

// unchanged returns those of the records that the node state still has as they were.
func (p *Plugin) unchanged(ctx context.Context, picked []record) (same []record, settings ipam.Settings, err error) {
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		now := map[netip.Addr]eni.Address{}
		for _, a := range state.Used() {
			now[a.Addr] = a
		}
		same, settings = nil, state.Settings
		for _, r := range picked {
			if a, used := now[r.Addr]; used && sameRecord(a, r.Address) {
				same = append(same, r)
			}
		}
		return nil
	})
	return same, settings, err
}

// sameRecord tells whether two used addresses are one attachment's: its key may be in
// use again, even for the same sandbox, but not since the same time.
func sameRecord(a, b eni.Address) bool { return *a.Owner == *b.Owner && a.Since == b.Since }
