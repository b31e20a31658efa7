package cni

import (
	"context"
	"errors"
	"fmt"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Add gives the attachment its addresses, sets up the kernel and hands the
// result to emit. If anything fails, emit included, all of it is undone.
func (p *Plugin) Add(ctx context.Context, r Request, emit func(*current.Result) error) (err error) {
	began := time.Now()
	if err := r.refuseExtras(); err != nil {
		return err
	}
	ns, err := host.OpenNetns(r.Owner.Netns)
	switch {
	case err == nil:
		defer ns.Close()
		r.Owner.NetnsInode = ns.Inode
	case r.Owner.Kind != eni.Delegated || errors.Is(err, host.ErrNetnsOwn):
		return err // only a delegate has no business in there
	}
	h, err := host.NewHere()
	if err != nil {
		return err
	}
	defer h.Close()
	device, err := r.device(h, ns)
	if err != nil {
		return err
	}
	lease, settings, res, err := p.settleIn(ctx, h, ns, r, device)
	if err != nil {
		return p.tellAgentAway(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.undo(context.WithoutCancel(ctx), h, ns, settings, lease))
		}
	}()
	if err := p.addExtras(ctx, h, r, settings, lease); err != nil {
		return err
	}
	p.Log.Info("add", "pod", r.Owner.PodName(), "key", r.Owner.Key.String(), "address", lease.Addresses[0].Addr,
		"eni", lease.Interface.ID, "kind", r.Owner.Kind.String(), "took", time.Since(began).Round(10*time.Microsecond))
	if !r.Conf.DNS.IsEmpty() { // else what a plugin before us in the chain said stays
		res.DNS = r.Conf.DNS
	}
	return emit(res)
}

// device returns the ENI link that the address must belong to because the pod's
// interface is bound to it, or "" for any.
func (r Request) device(h *host.Host, ns *host.Netns) (string, error) {
	switch r.Owner.Kind {
	case eni.Delegated:
		return r.Conf.Master, nil
	case eni.Chained:
		at := r.podInterface(r.Prev)
		for _, ip := range r.Prev.IPs {
			if ip.Interface != nil && *ip.Interface == at {
				return "", &config.KeyError{Key: "prevResult", Value: ip.Address.String(), Want: "without an address for " +
					r.Owner.IfName + ": enipool gives one; leave the ipam of the plugin before it empty"}
			}
		}
		link, err := h.ReadLink(ns, r.Owner.IfName)
		return link.Parent, err
	}
	return "", nil
}

// setUp makes the kernel hold what the lease needs and returns the result.
func (p *Plugin) setUp(h *host.Host, ns *host.Netns, r Request, s ipam.Settings, lease ipam.Lease) (*current.Result, error) {
	if r.Owner.Kind == eni.Veth {
		pod := netconf.NewPod(s, lease, r.Conf.MTU)
		if err := h.AddPod(ns, pod); err != nil {
			return nil, err
		}
		return vethResult(r.Prev, pod, r.Owner.Netns), nil
	}
	if err := h.AddRules(sourceRules(s, lease.Addresses)); err != nil {
		return nil, err
	}
	if r.Owner.Kind == eni.Delegated {
		res, _ := linkResult(nil, -1, lease, "")
		return res, nil
	}
	res, in := linkResult(r.Prev, r.podInterface(r.Prev), lease, r.Owner.IfName)
	return res, h.FillLink(ns, in)
}

// boundTo returns device if it is the link of an ENI of ours, else "": a macvlan
// over some other link may use any ENI's address.
func boundTo(s *ipam.State, device string) string {
	for _, nic := range s.ENIs {
		if nic.Device == device {
			return device
		}
	}
	return ""
}

// replaceDead frees what the attachment holds if its sandbox is provably gone;
// otherwise the first ADD stays as it is and duplicate is the answer.
func (p *Plugin) replaceDead(ctx context.Context, h *host.Host, k eni.Key, duplicate error) error {
	held, s, err := p.held(ctx, k)
	if err != nil {
		return err
	}
	if len(held.Addresses) == 0 {
		// Not in the node state is no proof of death: its line may be damaged.
		linked, err := h.HasLink(netconf.HostDevice(k))
		if err != nil {
			return err
		}
		if linked {
			return duplicate
		}
		return p.removeExtras(ctx, h, s, k, nil)
	}
	for _, a := range held.Addresses {
		dead, err := ownerGone(h, a)
		if err != nil {
			return err
		}
		if !dead {
			return duplicate
		}
	}
	return p.remove(ctx, h, nil, s, k, held)
}

// undo takes the lease back after a failure. If the kernel can't be cleaned the
// record stays, so that nobody else gets the address; DEL tries again.
func (p *Plugin) undo(ctx context.Context, h *host.Host, ns *host.Netns, s ipam.Settings, l ipam.Lease) error {
	owner := *l.Addresses[0].Owner
	late, err := p.closePorts(ctx, h, s, owner.Key, l.Addresses)
	defer late()
	if err := errors.Join(err, clean(h, ns, s, l)); err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	p.Log.Warn("add undone", "key", owner.Key.String())
	return p.Cache.For(owner.Key).Update(ctx, func(st *ipam.State) error {
		st.UndoLease(l)
		return nil
	})
}
