package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

func takesSecondary(node *node) {
	other, i := node.twoENIs(2, 1)
	addrs := union(i.Addresses, node.assignUnits(i.ID, 3)...)
	units := node.splitUnits(addrs)
	gone := slices.Concat(units[2], units[0]) // in no order
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, gone))
	node.checkCarries(i.ID, withoutAddrs(addrs, gone...))
	node.checkUntouched(other)
}

// leavesPrimary does not say whether the call is refused.
func leavesPrimary(node *node) {
	i := node.eniWith(1)
	before := node.settledENIs()
	primary := i.Net(node.firstFamily()).Primary.Addr()
	if err := node.Cloud.UnassignAddresses(node.ctx, i.ID, []netip.Addr{primary}); err != nil {
		node.checkKind(err, cloud.ErrForbidden)
	}
	node.checkUnchanged(before)
}

func takesWhatIsNot(node *node) {
	other, i := node.twoENIs(2, 3)
	theirs := other.Addresses[:min(len(other.Addresses), 1)]
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, nil))
	units := node.splitUnits(i.Addresses)
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, units[0]))
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, units[0]))
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, slices.Concat(units[0], theirs, units[1])))
	node.checkCarries(i.ID, withoutAddrs(i.Addresses, slices.Concat(units[0], units[1])...))
	node.checkUntouched(other)
}

func takesFromNobody(node *node) {
	nobody := []string{"eni-of-nobody"}
	var gone []netip.Addr
	if node.spareENIs() > 0 {
		i := node.createENI(1)
		node.must(node.Cloud.DeleteInterface(node.ctx, i.ID))
		nobody, gone = append(nobody, i.ID), i.Addresses
	}
	other := node.eniWith(1) // it may well have the same addresses
	for _, id := range nobody {
		node.must(node.Cloud.UnassignAddresses(node.ctx, id, slices.Concat(gone, other.Addresses)))
	}
	node.checkCarries(other.ID, other.Addresses)
}

// takesAgain has Late as its last failure: a late request may take addresses that the ENI has got
// again meanwhile.
func takesAgain(node *node) {
	i := node.eniWith(1)
	for _, f := range []Failure{Partial, Throttled, LostAfterEffect, Late} {
		addrs := node.assignSeveral(i, f)
		if addrs == nil {
			continue // no change is made of two requests
		}
		node.Inject("UnassignAddresses", f)
		node.checkKind(node.Cloud.UnassignAddresses(node.ctx, i.ID, addrs), cloud.NodeKinds()...)
		node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, addrs))
		node.checkCarries(i.ID, i.Addresses)
	}
}

// assignSeveral puts addresses on the ENI for one UnassignAddresses, which for Partial has to be made
// of several requests. It returns nil if there are no such addresses.
func (n *node) assignSeveral(iface cloud.Interface, failure Failure) []netip.Addr {
	n.Helper()
	if failure != Partial || n.Chunk == 0 {
		return n.assignUnits(iface.ID, 3)
	}
	if count := n.partialCount(n.firstFamily(), n.mostInUnits(n.firstFamily())-len(ofFamily(iface.Addresses, n.firstFamily()))); count > 0 {
		return n.assignExactCount(iface.ID, n.firstFamily(), count)
	}
	full := func(f eni.Family) bool { return countFamily(iface, f)+n.addressesIn(f, 1) > n.mostInUnits(f) }
	families := slices.DeleteFunc(n.familiesOf(iface), full)
	if len(families) < 2 {
		return nil
	}
	var addrs []netip.Addr
	for _, f := range families { // each goes by requests of its own
		addrs = append(addrs, n.assignExactCount(iface.ID, f, n.addressesIn(f, 1))...)
	}
	return addrs
}

func givenAgain(node *node) {
	other, i := node.twoENIs(1, 1)
	if node.spareENIs() < 2 {
		other = i // nobody else is to have them
	}
	addrs := node.assignUnits(i.ID, 2)
	node.Leave(node.first, 0)
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, addrs))
	again := node.assignUnits(other.ID, 2)
	node.checkCarries(other.ID, union(other.Addresses, again...))
	if other.ID != i.ID {
		node.checkCarries(i.ID, i.Addresses)
	}
}
