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

// mostHeld is how often an ADD goes on to the next address because others hold the
// one it took. Each time it notes all that the kernel shows to be held, so a second
// time is rare.
const mostHeld = 8

// settleIn takes addresses that nobody else has and sets up the kernel. Others may
// hold what the node state calls free: a node without agent never asked, and an agent
// asks from time to time.
func (p *Plugin) settleIn(ctx context.Context, h *host.Host, ns *host.Netns, r Request, device string) (lease ipam.Lease, s ipam.Settings, res *current.Result, err error) {
	for range mostHeld {
		lease, s, err = p.take(ctx, h, r, device)
		if err != nil {
			return lease, s, nil, err
		}
		if err = checkFree(h, lease.Addresses); err == nil {
			err = refuseCutOff(h, s, lease)
		}
		if err == nil {
			res, err = p.setUp(h, ns, r, s, lease)
		}
		if err == nil {
			return lease, s, res, nil
		}
		undone := p.undo(context.WithoutCancel(ctx), h, ns, s, lease)
		var held *host.HeldError
		if undone != nil || !errors.As(err, &held) {
			return lease, s, nil, errors.Join(err, undone)
		}
		p.Log.Warn("address is held by others", "address", held.Addr, "by", held.Cause, "key", r.Owner.Key.String())
		if err := p.noteHeld(ctx, h, held); err != nil {
			return lease, s, nil, err
		}
	}
	return lease, s, nil, err
}

// checkFree asks the kernel whether anybody has the addresses.
func checkFree(h *host.Host, addrs []eni.Address) error {
	for _, a := range addrs {
		if err := h.CheckFree(a.Addr); err != nil {
			return err
		}
	}
	return nil
}

// noteHeld notes which addresses others hold: the one that was found, and all others
// that a closer look at the kernel shows, so that the next ADDs need not find them.
func (p *Plugin) noteHeld(ctx context.Context, h *host.Host, found *host.HeldError) error {
	book, o, err := p.occupancy(ctx, h)
	if book == nil {
		return err
	}
	if err != nil {
		p.Log.Warn("can't read who else has addresses", "error", err)
	}
	return p.Cache.Update(ctx, func(s *ipam.State) error {
		// The one that was found first: what is seen may be more telling.
		s.MarkHeld(map[netip.Addr]string{found.Addr: found.Cause}, p.Now())
		s.MarkHeld(o.Held(s), p.Now())
		return nil
	})
}

// occupancy reads the node state, nil if it can't, and what the kernel holds for single
// addresses.
func (p *Plugin) occupancy(ctx context.Context, h *host.Host) (book *ipam.State, o netconf.Occupancy, err error) {
	owners := map[eni.Key]bool{}
	err = p.Cache.View(ctx, func(s *ipam.State) error {
		book = s
		for _, a := range s.Used() {
			owners[a.Owner.Key] = true
		}
		return nil
	})
	if err == nil {
		o, err = h.Occupancy(p.Now(), func(k eni.Key) bool { return owners[k] })
	}
	return book, o, err
}
