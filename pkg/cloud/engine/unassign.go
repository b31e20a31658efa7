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
	self, err := n.findSelf(ctx)
	if err != nil || len(addrs) == 0 {
		return err
	}
	// What is known may lack the addresses, or be of before an earlier process assigned them. Then
	// the ENI is described, because an address that it seems to lack is left out of the request.
	on, known := n.lastHere(id, recent)
	if !known || !n.hasAll(on, addrs) {
		now, err := n.describeENIOrLast(ctx, self, id)
		if err == nil && n.mayLack(id) && (now == nil || !n.hasAll(*now, addrs)) {
			if err = n.waitForEarlierProcess(ctx, id); err == nil {
				now, err = n.describeENIOrLast(ctx, self, id)
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
	return n.releaseAll(ctx, on, r)
}

// hasAll tells whether the ENI has all of the addresses, as far as is known.
func (n *Node) hasAll(on nic, addrs []netip.Addr) bool {
	has, _ := n.possibleAddresses(on)
	return len(minus(addrs, has)) == 0
}

// released is what an ENI loses.
type released struct {
	blocks  []netip.Prefix
	singles []netip.Addr
}

// sortReleased sorts addresses into blocks and single ones. It leaves out addresses that the ENI
// does not have, among them its primary ones.
func (n *Node) sortReleased(on nic, addrs []netip.Addr) (sorted released, err error) {
	has, blocks := n.possibleAddresses(on)
	wanted := minus(union(addrs), minus(addrs, has))
	for _, block := range blocks {
		all := addrsWithin(block, has)
		some := addrsWithin(block, wanted)
		if len(some) > 0 && len(some) < len(all) {
			return sorted, errorf(cloud.ErrForbidden, "prefix %s goes as a whole or not at all", block)
		}
		if len(some) > 0 {
			sorted.blocks = append(sorted.blocks, block)
			wanted = minus(wanted, some)
		}
	}
	sorted.singles = wanted
	return sorted, nil
}

// releaseAll makes the requests: for blocks and for single addresses of each family, as many per
// request as the cloud takes.
func (n *Node) releaseAll(ctx context.Context, on nic, r released) error {
	has, _ := n.possibleAddresses(on)
	begun := false
	for _, request := range n.requestsFor(on, r) {
		gone := slices.Clone(request.Addresses)
		for _, b := range request.Blocks {
			gone = append(gone, addrsWithin(b, has)...)
		}
		err := n.releasePart(ctx, request)
		if driver.Reason(err) == cloud.NoSuchInterface {
			return nil // the ENI is gone, and its addresses with it
		}
		if err != nil {
			if errors.Is(err, cloud.ErrUnknown) {
				before, _ := n.recentDeeds(on, unassigned) // by an earlier call, however this one ends
				n.noteDeed(on.ID, minus(gone, before), request.Blocks, uncertain)
			}
			return halfDoneIf(begun, err)
		}
		n.noteDeed(on.ID, gone, nil, unassigned)
		begun = true
	}
	return nil
}

// requestsFor returns the requests that a release takes.
func (n *Node) requestsFor(on nic, going released) (list []driver.Unassign) {
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		var blocks []netip.Prefix
		for _, b := range going.blocks {
			if eni.FamilyOf(b.Addr()) == family {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) > 0 {
			list = append(list, driver.Unassign{On: on.raw, Family: family, Blocks: blocks})
		}
		singles := ofFamily(going.singles, family)
		most := n.t.PerCall
		if most == 0 {
			most = max(len(singles), 1)
		}
		for part := range slices.Chunk(singles, most) {
			list = append(list, driver.Unassign{On: on.raw, Family: family, Addresses: part})
		}
	}
	return list
}

// releasePart makes one request. Clouds refuse it as a whole if the ENI lacks one of the addresses,
// which a describe may not show yet. Then each is requested alone.
func (n *Node) releasePart(ctx context.Context, u driver.Unassign) error {
	u.Token = n.o.Token()
	err := n.d.Unassign(ctx, u)
	if driver.Reason(err) != cloud.NoSuchAddress {
		return err
	}
	if len(u.Addresses)+len(u.Blocks) == 1 {
		return nil // the ENI lacks it, so it is released
	}
	begun := false
	for _, one := range oneByOne(u) {
		one.Token = n.o.Token()
		err := n.d.Unassign(ctx, one)
		if err != nil && driver.Reason(err) != cloud.NoSuchAddress {
			return halfDoneIf(begun, err)
		}
		begun = begun || err == nil
	}
	return nil
}

// oneByOne returns a request for each address and block alone.
func oneByOne(u driver.Unassign) (list []driver.Unassign) {
	for _, a := range u.Addresses {
		list = append(list, driver.Unassign{On: u.On, Family: u.Family, Addresses: []netip.Addr{a}})
	}
	for _, b := range u.Blocks {
		list = append(list, driver.Unassign{On: u.On, Family: u.Family, Blocks: []netip.Prefix{b}})
	}
	return list
}
