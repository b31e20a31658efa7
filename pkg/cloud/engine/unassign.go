package engine

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// UnassignAddresses implements cloud.Cloud.
func (n *Node) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) (err error) {
	defer nameError(&err, "UnassignAddresses", id)
	self, err := n.whoami(ctx)
	if err != nil || len(addrs) == 0 {
		return err
	}
	on, known := n.lastHere(id, recent)
	if !known || !n.hasAll(on, addrs) {
		now, err := n.oneAsSeen(ctx, self, id)
		if err == nil && n.mayLack(id) && (now == nil || !n.hasAll(*now, addrs)) {
			if err = n.grow(ctx, id); err == nil {
				now, err = n.oneAsSeen(ctx, self, id)
			}
		}
		if err != nil || now == nil {
			return err
		}
		on = *now
	}
	r, err := n.sortReleased(on, addrs)
	if err != nil {
		return err
	}
	return n.release(ctx, on, r)
}

// hasAll tells whether the ENI has all of the addresses, as far as is known.
func (n *Node) hasAll(on nic, addrs []netip.Addr) bool {
	has, _ := n.perhaps(on)
	return len(minus(addrs, has)) == 0
}

// released is what of an ENI goes.
type released struct {
	blocks  []netip.Prefix
	singles []netip.Addr
}

// sortReleased sorts addresses into blocks and single ones. Those that the ENI does not
// have are left out; primary ones it never loses.
func (n *Node) sortReleased(on nic, addrs []netip.Addr) (r released, err error) {
	has, blocks := n.perhaps(on)
	wanted := minus(union(addrs), minus(addrs, has))
	for _, block := range blocks {
		all := within(block, has)
		some := within(block, wanted)
		if len(some) > 0 && len(some) < len(all) {
			return r, because(cloud.ErrForbidden, "prefix %s goes as a whole or not at all", block)
		}
		if len(some) > 0 {
			r.blocks = append(r.blocks, block)
			wanted = minus(wanted, some)
		}
	}
	r.singles = wanted
	return r, nil
}

// release makes the calls: for blocks and for single addresses of each family, so many a
// call as the cloud takes.
func (n *Node) release(ctx context.Context, on nic, r released) error {
	has, _ := n.perhaps(on)
	begun := false
	for _, u := range n.parts(on, r) {
		gone := slices.Clone(u.Addresses)
		for _, b := range u.Blocks {
			gone = append(gone, within(b, has)...)
		}
		err := n.releasePart(ctx, u)
		if driver.Reason(err) == driver.NoSuchInterface {
			return nil // the ENI is gone, and its addresses with it
		}
		if err != nil {
			if errors.Is(err, cloud.ErrUnknown) {
				before, _ := n.lately(on, taken) // by an earlier call, however this one ends
				n.note(on.ID, minus(gone, before), u.Blocks, unsure)
			}
			return halfDoneIf(begun, err)
		}
		n.note(on.ID, gone, nil, taken)
		begun = true
	}
	return nil
}

// parts are the calls that a release takes.
func (n *Node) parts(on nic, r released) (list []driver.Unassign) {
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		var blocks []netip.Prefix
		for _, b := range r.blocks {
			if eni.FamilyOf(b.Addr()) == f {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) > 0 {
			list = append(list, driver.Unassign{On: on.raw, Family: f, Blocks: blocks})
		}
		singles := ofFamily(r.singles, f)
		most := n.t.PerCall
		if most == 0 {
			most = max(len(singles), 1)
		}
		for part := range slices.Chunk(singles, most) {
			list = append(list, driver.Unassign{On: on.raw, Family: f, Addresses: part})
		}
	}
	return list
}

// releasePart makes one call. Clouds refuse all of it where the ENI does not have one of
// them, which a describe may not show yet: then each is asked for alone.
func (n *Node) releasePart(ctx context.Context, u driver.Unassign) error {
	u.Token = n.o.Token()
	err := n.d.Unassign(ctx, u)
	if driver.Reason(err) != driver.NoSuchAddress {
		return err
	}
	if len(u.Addresses)+len(u.Blocks) == 1 {
		return nil
	}
	begun := false
	for _, one := range singly(u) {
		one.Token = n.o.Token()
		err := n.d.Unassign(ctx, one)
		if err != nil && driver.Reason(err) != driver.NoSuchAddress {
			return halfDoneIf(begun, err)
		}
		begun = begun || err == nil
	}
	return nil
}

// singly are the calls for each address and block alone.
func singly(u driver.Unassign) (list []driver.Unassign) {
	for _, a := range u.Addresses {
		list = append(list, driver.Unassign{On: u.On, Family: u.Family, Addresses: []netip.Addr{a}})
	}
	for _, b := range u.Blocks {
		list = append(list, driver.Unassign{On: u.On, Family: u.Family, Blocks: []netip.Prefix{b}})
	}
	return list
}
