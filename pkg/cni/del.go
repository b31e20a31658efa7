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

// Del takes back whatever the attachment has: it cleans the kernel even where
// the node state knows nothing, and succeeds when there is nothing to do.
func (p *Plugin) Del(ctx context.Context, r Request) error {
	began := time.Now()
	h, err := host.NewHere()
	if err != nil {
		return err
	}
	defer h.Close()
	held, s, err := p.held(ctx, r.Owner.Key)
	if nodecache.Unusable(err) {
		// Whoever rebuilds the node state does it from the kernel, where nothing of
		// this attachment will be left.
		p.Log.Warn("del without a node cache", "key", r.Owner.Key.String(), "error", err)
		late, err := p.closePorts(ctx, h, s, r.Owner.Key, nil)
		defer late()
		return errors.Join(err, p.removeUnknown(h, r.Owner.Key))
	}
	if err != nil {
		return err
	}
	var ns *host.Netns
	if len(held.Addresses) > 0 && held.Addresses[0].Owner.Kind != eni.Delegated {
		// One that can't be opened needs no cleaning; one that is the node's own or
		// somebody else's is told by its inode and by what is in it.
		if ns, err = host.OpenNetns(r.Owner.Netns); err == nil {
			defer ns.Close()
		}
	}
	if err := p.endFormer(ctx, h, r, s, held); err != nil {
		return err
	}
	if err := p.remove(ctx, h, ns, s, r.Owner.Key, held); err != nil {
		return err
	}
	p.Log.Info("del", "pod", r.Owner.PodName(), "key", r.Owner.Key.String(), "released", len(held.Addresses),
		"took", time.Since(began).Round(10*time.Microsecond))
	return nil
}

// held returns what the attachment holds, and the node's settings.
func (p *Plugin) held(ctx context.Context, k eni.Key) (l ipam.Lease, s ipam.Settings, err error) {
	err = p.Cache.For(k).View(ctx, func(st *ipam.State) error {
		l, s = st.LeaseOf(k), st.Settings
		return nil
	})
	return l, s, err
}

// remove cleans the kernel of what the attachment holds, then releases it.
func (p *Plugin) remove(ctx context.Context, h *host.Host, ns *host.Netns, s ipam.Settings, k eni.Key, held ipam.Lease) error {
	late, err := p.closePorts(ctx, h, s, k, held.Addresses)
	defer late()
	if err != nil {
		return err
	}
	if len(held.Addresses) == 0 {
		return p.removeUnknown(h, k)
	}
	if err := clean(h, ns, s, held); err != nil {
		return err
	}
	return p.Cache.For(k).Update(ctx, func(st *ipam.State) error {
		st.Free(k, p.Now())
		return nil
	})
}

// clean removes what the kernel holds for the lease. ns may be nil.
func clean(h *host.Host, ns *host.Netns, s ipam.Settings, l ipam.Lease) error {
	o := l.Addresses[0].Owner
	if ns != nil && o.NetnsInode != 0 && o.NetnsInode != ns.Inode {
		ns = nil // another sandbox's by now
	}
	if o.Kind == eni.Chained && ns != nil {
		addrs, routes := inside(o.IfName, l.Interface, l.Addresses)
		if err := h.ClearLink(ns, host.Inside{Dev: o.IfName, Addrs: addrs, Routes: routes}); err != nil {
			return err
		}
	}
	if err := h.DelPod(o.Key, sourceRules(s, l.Addresses)); err != nil {
		return err
	}
	if o.Kind == eni.Veth && ns != nil {
		var addrs []netip.Prefix
		for _, a := range l.Addresses {
			addrs = append(addrs, a.Prefix())
		}
		// It is the pod's alone, which hardly ever goes on: no reason to keep the address.
		_ = ns.LeavePod(addrs)
	}
	return nil
}

// ownerGone tells whether the owner of a is provably gone: its namespace is no longer
// where it was, and where we made a link, that is gone with it. A namespace may
// outlive its path, the link may not outlive the namespace. An owner without a
// path was found in the kernel by its link.
func ownerGone(h *host.Host, a eni.Address) (bool, error) {
	o := a.Owner
	if o.Kind != eni.Veth {
		// A socket or a descriptor may keep the namespace of a process that has ended, and
		// without a link of ours nothing tells.
		return host.NetnsGone(o.Netns, o.NetnsInode) && !host.NetnsOfProcess(o.Netns), nil
	}
	if o.Netns != "" && !host.NetnsGone(o.Netns, o.NetnsInode) && !host.NetnsUnseen(o.Netns) {
		return false, nil
	}
	linked, err := h.HasLink(netconf.HostDevice(o.Key))
	return err == nil && !linked, err
}
