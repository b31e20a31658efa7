package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/config/inventory"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Load puts the inventory in place: kernel and node cache. Repeated with the same
// inventory it changes nothing; with another one it adds what is new and removes
// what no pod uses, or refuses as a whole and names who does. A cache that is
// damaged or of another boot is rebuilt, with the owners that the kernel shows.
// It returns a line for each change.
func (n Node) Load(ctx context.Context, inv inventory.Inventory) ([]string, error) {
	want, err := n.complete(inv)
	if err != nil {
		return nil, err
	}
	o, err := n.Occupancy(ctx)
	if err != nil {
		return nil, err
	}
	merge := func(old *ipam.State) (*ipam.State, error) { return mergeState(old, want, o) }
	var old *ipam.State
	err = n.Cache.View(ctx, func(s *ipam.State) error { old = s; return nil })
	if err != nil && !nodecache.Unusable(err) {
		return nil, err
	}
	next, err := merge(old)
	if err != nil {
		return nil, err
	}
	lines := describe(old, next)
	grown, err := n.apply(ctx, fixed(union(old, next)), change{addOnly: true, fresh: newToSNAT(old, next)})
	if err != nil {
		return grown, fmt.Errorf("put the kernel state in place (the node cache is as it was): %w", err)
	}
	if len(lines) > 0 {
		grown = append(grown, forgetConnections(ctx, n.Cache.View, next)...)
		err := n.Cache.Replace(ctx, func(now *ipam.State, _ error) (*ipam.State, error) {
			return merge(now)
		})
		if err != nil {
			// What was added for the new node state is removed again.
			_, undo := n.apply(ctx, n.Cache.View, change{obsolete: netconf.NewNode(next)})
			return nil, errors.Join(err, undo)
		}
	}
	var c change
	if old != nil {
		c.obsolete = netconf.NewNode(old)
	}
	shrunk, err := n.apply(ctx, n.Cache.View, c)
	if n.Cache.Why() == uninstalled {
		err = errors.Join(err, n.Cache.SetWhy("")) // the node is in use again
	}
	return slices.Concat(lines, grown, shrunk), err
}

// complete fills in what only the node knows.
func (n Node) complete(inv inventory.Inventory) (ipam.State, error) {
	s := inv.State
	if err := ChooseFirewall(&s.Settings, inv.AnyFirewall); err != nil {
		return s, err
	}
	h, err := host.New()
	if err != nil {
		return s, err
	}
	defer h.Close()
	s.ENIs = slices.Clone(s.ENIs)
	for i := range s.ENIs {
		// The link is asked for even where the inventory says its MTU: an ENI whose link is missing
		// has to be an error here, before the node cache and the kernel are changed.
		mtu, err := h.MTU(s.ENIs[i].Device)
		if err != nil {
			return s, fmt.Errorf("eni %s: %w", s.ENIs[i].ID, err)
		}
		if s.ENIs[i].MTU == 0 {
			s.ENIs[i].MTU = mtu
		}
	}
	return s, nil
}

// mergeState makes the new node state of the inventory, of the old node state (nil for none), and
// of the owners that the kernel shows.
func mergeState(old *ipam.State, want ipam.State, o netconf.Occupancy) (*ipam.State, error) {
	if old != nil { // an inventory does not know them
		want.Settings.V4Block, want.Settings.V6Block = old.Settings.V4Block, old.Settings.V6Block
	}
	// What is new counts from when the kernel was read: what was read then says nothing about
	// addresses that came later.
	next, err := ipam.Merge(old, want, o.Owners(&want), o.At)
	if err != nil {
		return nil, err
	}
	next.Distrust(old, o.At)
	next.CoolHeld(o.NoLongerHeld(next), o.At)
	next.MarkHeld(o.Held(next), o.At)
	return next, nil
}

// union is next with the addresses that only old has, so that a pod which gets
// one of those while the node cache is being replaced is routed.
func union(old, next *ipam.State) *ipam.State {
	if old == nil {
		return next
	}
	all := &ipam.State{Settings: next.Settings, ENIs: next.ENIs, Addresses: slices.Clone(next.Addresses)}
	has := map[netip.Addr]bool{}
	for _, a := range next.Addresses {
		has[a.Addr] = true
	}
	for _, a := range old.Addresses {
		if _, known := next.Interface(a.ENI); known && !has[a.Addr] {
			all.Addresses = append(all.Addresses, a)
		}
	}
	return all
}

// describe returns a line for each thing that is in one node state and not the other.
func describe(old, next *ipam.State) []string {
	var lines []string
	if old == nil {
		old = &ipam.State{}
	}
	if fmt.Sprint(old.Settings) != fmt.Sprint(next.Settings) {
		lines = append(lines, "cache settings")
	}
	for _, d := range old.Damaged {
		lines = append(lines, "cache rebuild "+d.Cause)
	}
	lines = append(lines, difference("cache eni ", old.ENIs, next.ENIs, func(i eni.Interface) string { return i.ID })...)
	lines = append(lines, difference("cache address ", old.Addresses, next.Addresses, func(a eni.Address) string { return a.Addr.String() })...)
	lines = append(lines, describeHeld(old, next)...)
	if len(lines) == 0 && !slices.EqualFunc(old.ENIs, next.ENIs, eni.Interface.Equal) {
		lines = append(lines, "cache order of ENIs or their settings")
	}
	return lines
}

func difference[T any](what string, old, next []T, name func(T) string) []string {
	var lines []string
	had := map[string]bool{}
	for _, o := range old {
		had[name(o)] = true
	}
	for _, n := range next {
		if !had[name(n)] {
			lines = append(lines, "add "+what+name(n))
		}
		delete(had, name(n))
	}
	for _, o := range old {
		if had[name(o)] {
			lines = append(lines, "remove "+what+name(o))
		}
	}
	return lines
}

// describeHeld returns a line for each address that others hold in one node state only.
func describeHeld(old, next *ipam.State) []string {
	was := map[netip.Addr]string{}
	for _, a := range old.HeldAddresses() {
		was[a.Addr] = a.HeldBy
	}
	var lines []string
	for _, a := range next.HeldAddresses() {
		if by, held := was[a.Addr]; !held || by != a.HeldBy {
			lines = append(lines, ipam.HeldLine(a))
		}
		delete(was, a.Addr)
	}
	for _, a := range slices.SortedFunc(maps.Keys(was), netip.Addr.Compare) {
		lines = append(lines, fmt.Sprintf("%s is held by others no more", a))
	}
	return lines
}
