package cni

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// goneBy is what an address is held by that nobody holds any more and that is not ready.
const goneBy = "nothing any more, and the agent or `enipoolctl pool load` has not set it up again yet"

// takeBackHeld lets the pool have what others held and hold no more: without an agent
// nobody hears that they let it go. Such an address cools first, as after any other pod.
func (p *Plugin) takeBackHeld(ctx context.Context, h *host.Host) error {
	var book *ipam.State
	if err := p.Cache.View(ctx, func(s *ipam.State) error { book = s; return nil }); err != nil {
		return err
	}
	if len(book.Holds()) == 0 {
		return nil
	}
	owners := map[eni.Key]bool{}
	for _, a := range book.Used() {
		owners[a.Owner.Key] = true
	}
	o, err := h.Occupancy(p.Now(), func(k eni.Key) bool { return owners[k] })
	if err != nil {
		return err
	}
	var ready []netip.Addr
	notReady := map[netip.Addr]string{}
	for _, addr := range o.LetGo(book) {
		at := slices.IndexFunc(book.Addresses, func(a eni.Address) bool { return a.Addr == addr })
		if ok, err := isSetUp(book.Settings, book.Addresses[at]); err != nil {
			return err
		} else if ok {
			ready = append(ready, addr)
		} else {
			notReady[addr] = goneBy
		}
	}
	return p.Cache.Update(ctx, func(s *ipam.State) error {
		// An agent, or another ADD, may have been faster.
		gone := o.LetGo(s)
		still := func(a netip.Addr) bool { return slices.Contains(gone, a) }
		maps.DeleteFunc(notReady, func(a netip.Addr, _ string) bool { return !still(a) })
		s.Hold(notReady, p.Now())
		s.Hold(o.Held(s), p.Now())
		s.Unhold(slices.DeleteFunc(ready, func(a netip.Addr) bool { return !still(a) }), p.Now())
		return nil
	})
}

// isSetUp tells whether the packet filter has what it should have for each address of the
// pool: whoever loaded the pool, or repaired it, left out what was held then.
func isSetUp(s ipam.Settings, a eni.Address) (bool, error) {
	lines, err := checkSources(s, ipam.Lease{Addresses: []eni.Address{a}})
	if err != nil || len(lines) > 0 || !s.SNAT || s.Firewall != ipam.Nftables || !a.Addr.Is4() {
		return err == nil && len(lines) == 0, err
	}
	set, _ := netconf.SNATSource(a.Addr)
	_, found, err := nfset.Table{Family: unix.NFPROTO_INET, Name: netconf.NftTableName}.Get(set, a.Addr.AsSlice())
	if errors.Is(err, unix.EOPNOTSUPP) {
		return true, nil // as checkSources has it
	}
	if err != nil {
		return false, fmt.Errorf("look whether %s is set up: %w", a.Addr, err)
	}
	return found, nil
}
