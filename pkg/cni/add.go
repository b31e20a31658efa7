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
func (p *Plugin) Add(ctx context.Context, request Request, emit func(*current.Result) error) (err error) {
	began := time.Now()
	if err := request.refuseExtras(); err != nil {
		return err
	}
	ns, err := host.OpenNetns(request.Owner.Netns)
	switch {
	case err == nil:
		defer ns.Close()
		request.Owner.NetnsInode = ns.Inode
	case request.Owner.Kind != eni.Delegated || errors.Is(err, host.ErrNetnsOwn):
		return err // only a delegate does without: its caller works in the namespace
	}
	kernel, err := host.NewHere()
	if err != nil {
		return err
	}
	defer kernel.Close()
	device, err := request.boundDevice(kernel, ns)
	if err != nil {
		return err
	}
	lease, settings, res, err := p.leaseAndSetUp(ctx, kernel, ns, request, device)
	if err != nil {
		return p.tellAgentAway(p.tellRepair(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.undoAdd(context.WithoutCancel(ctx), kernel, ns, settings, lease))
		}
	}()
	if err := p.addExtras(ctx, kernel, request, settings, lease); err != nil {
		return p.tellAgentAway(err)
	}
	p.Log.Info("add", "pod", request.Owner.PodName(), "key", request.Owner.Key.String(), "address", lease.Addresses[0].Addr,
		"eni", lease.Interface.ID, "kind", request.Owner.Kind.String(), "took", time.Since(began).Round(10*time.Microsecond))
	if !request.Conf.DNS.IsEmpty() { // else that of the plugins before us in the chain stays
		res.DNS = request.Conf.DNS
	}
	return emit(res)
}

// boundDevice returns the ENI link that the address must belong to because the pod's
// interface is bound to it, or "" for any.
func (r Request) boundDevice(kernel *host.Host, ns *host.Netns) (string, error) {
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
		link, err := kernel.ReadLink(ns, r.Owner.IfName)
		return link.Parent, err
	}
	return "", nil
}

// setUp makes the kernel hold what the lease needs and returns the result.
func (p *Plugin) setUp(kernel *host.Host, ns *host.Netns, request Request, settings ipam.Settings, lease ipam.Lease) (*current.Result, error) {
	if request.Owner.Kind == eni.Veth {
		pod := netconf.NewPod(settings, lease, request.Conf.MTU)
		if err := kernel.AddPod(ns, pod); err != nil {
			return nil, err
		}
		return vethResult(request.Prev, pod, request.Owner.Netns), nil
	}
	if err := kernel.AddRules(sourceRules(settings, lease.Addresses)); err != nil {
		return nil, err
	}
	if request.Owner.Kind == eni.Delegated {
		res, _ := linkResult(nil, -1, lease, "")
		return res, nil
	}
	res, in := linkResult(request.Prev, request.podInterface(request.Prev), lease, request.Owner.IfName)
	return res, kernel.FillLink(ns, in)
}

// boundTo returns device if it is the link of an ENI of ours, else "": a macvlan
// over some other link may use any ENI's address.
func boundTo(state *ipam.State, device string) string {
	for _, nic := range state.ENIs {
		if nic.Device == device {
			return device
		}
	}
	return ""
}

// freeIfGone frees what the attachment holds if its sandbox is provably gone;
// otherwise the first ADD stays as it is and duplicate is the answer.
func (p *Plugin) freeIfGone(ctx context.Context, kernel *host.Host, key eni.Key, duplicate error) error {
	held, settings, err := p.leaseOf(ctx, key)
	if err != nil {
		return err
	}
	if len(held.Addresses) == 0 {
		// That the node state lacks it is no proof that it is gone: its line may be damaged.
		linked, err := kernel.HasLink(netconf.HostDevice(key))
		if err != nil {
			return err
		}
		if linked {
			return duplicate
		}
		return p.removeExtras(ctx, kernel, settings, key, nil)
	}
	for _, a := range held.Addresses {
		gone, err := ownerGone(kernel, a)
		if err != nil {
			return err
		}
		if !gone {
			return duplicate
		}
	}
	return p.remove(ctx, kernel, nil, settings, key, held)
}

// undoAdd undoes the lease after a failure. If the kernel can't be cleaned the address
// stays used, so that no other pod gets it; DEL tries again.
func (p *Plugin) undoAdd(ctx context.Context, kernel *host.Host, ns *host.Netns, settings ipam.Settings, lease ipam.Lease) error {
	owner := *lease.Addresses[0].Owner
	late, err := p.closePorts(ctx, kernel, settings, owner.Key, lease.Addresses)
	defer late()
	if err := errors.Join(err, cleanKernel(kernel, ns, settings, lease)); err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	p.Log.Warn("add undone", "key", owner.Key.String())
	return p.Cache.For(owner.Key).Update(ctx, func(state *ipam.State) error {
		state.UndoLease(lease)
		return nil
	})
}
