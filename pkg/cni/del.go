package cni

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Del frees whatever the attachment has: it cleans the kernel even where the node state
// knows nothing, and succeeds when there is nothing to do.
func (p *Plugin) Del(ctx context.Context, request Request) error {
	began := time.Now()
	kernel, err := host.NewHere()
	if err != nil {
		return err
	}
	defer kernel.Close()
	held, settings, err := p.leaseOf(ctx, request.Owner.Key)
	if nodecache.Unusable(err) {
		// Whoever rebuilds the node state does it from the kernel, where nothing of
		// this attachment will be left.
		p.Log.Warn("del without a node cache", "key", request.Owner.Key.String(), "error", err)
		late, err := p.closePorts(ctx, kernel, settings, request.Owner.Key, nil)
		defer late()
		return errors.Join(err, p.removeUnknown(kernel, request.Owner.Key))
	}
	if err != nil {
		return err
	}
	var ns *host.Netns
	if len(held.Addresses) > 0 && held.Addresses[0].Owner.Kind != eni.Delegated {
		// A namespace that can't be opened needs no cleaning. Whether the one at the path is
		// still the pod's cleanKernel tells by its inode.
		if ns, err = host.OpenNetns(request.Owner.Netns); err == nil {
			defer ns.Close()
		}
	}
	if err := p.endFormer(ctx, kernel, request, settings, held); err != nil {
		return err
	}
	if err := p.remove(ctx, kernel, ns, settings, request.Owner.Key, held); err != nil {
		return err
	}
	p.Log.Info("del", "pod", request.Owner.PodName(), "key", request.Owner.Key.String(), "released", len(held.Addresses),
		"took", time.Since(began).Round(10*time.Microsecond))
	return nil
}

// leaseOf returns what the attachment holds, and the node's settings.
func (p *Plugin) leaseOf(ctx context.Context, key eni.Key) (lease ipam.Lease, settings ipam.Settings, err error) {
	err = p.Cache.For(key).View(ctx, func(state *ipam.State) error {
		lease, settings = state.LeaseOf(key), state.Settings
		return nil
	})
	return lease, settings, err
}

// remove cleans the kernel of what the attachment holds, then frees it.
func (p *Plugin) remove(ctx context.Context, kernel *host.Host, ns *host.Netns, settings ipam.Settings, key eni.Key, held ipam.Lease) error {
	late, err := p.closePorts(ctx, kernel, settings, key, held.Addresses)
	defer late()
	if err != nil {
		return err
	}
	if len(held.Addresses) == 0 {
		return p.removeUnknown(kernel, key)
	}
	if err := cleanKernel(kernel, ns, settings, held); err != nil {
		return err
	}
	return p.Cache.For(key).Update(ctx, func(state *ipam.State) error {
		state.Free(key, p.Now())
		return nil
	})
}

// cleanKernel removes what the kernel holds for the lease. ns may be nil.
func cleanKernel(kernel *host.Host, ns *host.Netns, settings ipam.Settings, lease ipam.Lease) error {
	owner := lease.Addresses[0].Owner
	if ns != nil && owner.NetnsInode != 0 && owner.NetnsInode != ns.Inode {
		ns = nil // another sandbox's by now
	}
	if owner.Kind == eni.Chained && ns != nil {
		addrs, routes := insideLink(owner.IfName, lease.Interface, lease.Addresses)
		if err := kernel.ClearLink(ns, host.Inside{Dev: owner.IfName, Addrs: addrs, Routes: routes}); err != nil {
			return err
		}
	}
	if err := kernel.DelPod(owner.Key, sourceRules(settings, lease.Addresses)); err != nil {
		return err
	}
	if owner.Kind == eni.Veth && ns != nil {
		var addrs []netip.Prefix
		for _, a := range lease.Addresses {
			addrs = append(addrs, a.Prefix())
		}
		// The link is gone already, so what stays in the namespace harms only the pod itself, which
		// hardly ever goes on: no reason to keep the address.
		_ = ns.LeavePod(addrs)
	}
	return nil
}

// ownerGone tells whether the owner of a is provably gone: its namespace is no longer
// where it was, and where we made a link, that is gone with it. A namespace may
// outlive its path, but no link outlives its namespace. An owner without a path was found
// in the kernel, after the node state was lost: then the link alone tells.
func ownerGone(kernel *host.Host, a eni.Address) (bool, error) {
	owner := a.Owner
	if owner.Kind != eni.Veth {
		// A socket or a descriptor may keep the namespace of a process that has ended, and
		// without a link of ours nothing tells.
		return host.NetnsGone(owner.Netns, owner.NetnsInode) && !host.NetnsOfProcess(owner.Netns), nil
	}
	if owner.Netns != "" && !host.NetnsGone(owner.Netns, owner.NetnsInode) && !host.NetnsUnseen(owner.Netns) {
		return false, nil
	}
	linked, err := kernel.HasLink(netconf.HostDevice(owner.Key))
	return err == nil && !linked, err
}
