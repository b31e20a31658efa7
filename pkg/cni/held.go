package cni

import (
	"context"
	"errors"
	"net/netip"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// mostTries is how many addresses an ADD tries that others turn out to hold. After each it
// notes all that the kernel shows to be held, so a second one is rare.
const mostTries = 8

// leaseAndSetUp takes addresses that nobody else has and sets up the kernel for them. Others
// may hold what the node state calls free: without an agent nobody looked, and an agent
// looks from time to time.
func (p *Plugin) leaseAndSetUp(ctx context.Context, kernel *host.Host, ns *host.Netns, request Request, device string) (lease ipam.Lease, settings ipam.Settings, res *current.Result, err error) {
	for range mostTries {
		lease, settings, err = p.takeLease(ctx, kernel, request, device)
		if err != nil {
			return lease, settings, nil, err
		}
		if err = checkFree(kernel, lease.Addresses); err == nil {
			err = refuseCutOff(kernel, settings, lease)
		}
		if err == nil {
			res, err = p.setUp(kernel, ns, request, settings, lease)
		}
		if err == nil {
			return lease, settings, res, nil
		}
		undone := p.undoAdd(context.WithoutCancel(ctx), kernel, ns, settings, lease)
		var held *host.HeldError
		if undone != nil || !errors.As(err, &held) {
			return lease, settings, nil, errors.Join(err, undone)
		}
		p.Log.Warn("address is held by others", "address", held.Addr, "by", held.Cause, "key", request.Owner.Key.String())
		if err := p.noteHeld(ctx, kernel, held); err != nil {
			return lease, settings, nil, err
		}
	}
	return lease, settings, nil, err
}

// checkFree asks the kernel whether anybody has the addresses.
func checkFree(kernel *host.Host, addrs []eni.Address) error {
	for _, a := range addrs {
		if err := kernel.CheckFree(a.Addr); err != nil {
			return err
		}
	}
	return nil
}

// noteHeld notes which addresses others hold: the one that was found, and all others
// that the kernel shows, so that the next ADDs need not find them.
func (p *Plugin) noteHeld(ctx context.Context, kernel *host.Host, found *host.HeldError) error {
	state, occupancy, err := p.occupancy(ctx, kernel)
	if state == nil {
		return err
	}
	if err != nil {
		p.Log.Warn("can't read who else has addresses", "error", err)
	}
	return p.Cache.Update(ctx, func(state *ipam.State) error {
		// found first: occupancy may name the same address with a cause that says more.
		state.MarkHeld(map[netip.Addr]string{found.Addr: found.Cause}, p.Now())
		state.MarkHeld(occupancy.Held(state), p.Now())
		return nil
	})
}

// occupancy reads the node state, nil if that can't be read, and what the kernel holds for
// single addresses.
func (p *Plugin) occupancy(ctx context.Context, kernel *host.Host) (state *ipam.State, occupancy netconf.Occupancy, err error) {
	owners := map[eni.Key]bool{}
	err = p.Cache.View(ctx, func(read *ipam.State) error {
		state = read
		for _, a := range state.Used() {
			owners[a.Owner.Key] = true
		}
		return nil
	})
	if err == nil {
		occupancy, err = kernel.Occupancy(p.Now(), func(key eni.Key) bool { return owners[key] })
	}
	return state, occupancy, err
}
