package cni

import (
	"context"
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// notSetUpYet is the cause of an address that others no longer hold, but that the packet filter
// lacks: a pod with it would be cut off.
const notSetUpYet = "nothing any more, and the agent or `enipoolctl pool load` has not set it up again yet"

// freeNoLongerHeld frees the addresses that others held and no longer hold: without an agent
// nobody else notices. Such an address cools first, as after a pod.
func (p *Plugin) freeNoLongerHeld(ctx context.Context, kernel *host.Host) error {
	var held []eni.Address
	err := p.Cache.View(ctx, func(state *ipam.State) error { held = state.HeldAddresses(); return nil })
	if len(held) == 0 {
		return err
	}
	known, occupancy, err := p.occupancy(ctx, kernel)
	if err != nil {
		return err
	}
	ready := map[netip.Addr]bool{}
	for _, a := range held {
		ready[a.Addr] = isSetUp(known.Settings, a)
	}
	return p.Cache.Update(ctx, func(state *ipam.State) error {
		state.MarkHeld(occupancy.Held(state), p.Now()) // the cause of those that are still held may be another one now
		for _, addr := range occupancy.NoLongerHeld(state) {
			if ready[addr] {
				state.CoolHeld([]netip.Addr{addr}, p.Now())
			} else {
				state.MarkHeld(map[netip.Addr]string{addr: notSetUpYet}, p.Now())
			}
		}
		return nil
	})
}

// isSetUp tells whether the packet filter has the elements that each address of the pool
// needs. Whoever loaded the pool, or repaired it, left out the addresses that were held then.
func isSetUp(settings ipam.Settings, a eni.Address) bool {
	lines, err := checkSources(settings, ipam.Lease{Addresses: []eni.Address{a}})
	if err != nil || len(lines) > 0 {
		return false
	}
	if !settings.SNAT || settings.Firewall != ipam.Nftables || !a.Addr.Is4() {
		return true
	}
	set, _ := netconf.SNATSource(a.Addr)
	_, found, err := nfset.Table{Family: unix.NFPROTO_INET, Name: netconf.NftTableName}.Get(set, a.Addr.AsSlice())
	return found || errors.Is(err, unix.EOPNOTSUPP) // as checkSources has it
}
