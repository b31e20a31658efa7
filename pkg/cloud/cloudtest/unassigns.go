package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

func takes(n *node) {
	other, i := n.pair(2, 1)
	addrs := with(i.Addresses, n.assign(i.ID, 3)...)
	units := n.units(addrs)
	gone := slices.Concat(units[2], units[0]) // in no order
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, gone))
	n.carries(i.ID, withoutAddrs(addrs, gone...))
	n.untouched(other)
}

// leavesPrimary: whether the cloud refuses such a call is its own affair.
func leavesPrimary(n *node) {
	i := n.carrier(1)
	before := n.see()
	primary := i.Net(n.family()).Primary.Addr()
	if err := n.Cloud.UnassignAddresses(n.ctx, i.ID, []netip.Addr{primary}); err != nil {
		n.is(err, cloud.ErrForbidden)
	}
	n.unchanged(before)
}

func takesWhatIsNot(n *node) {
	other, i := n.pair(2, 3)
	theirs := other.Addresses[:min(len(other.Addresses), 1)]
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, nil))
	units := n.units(i.Addresses)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, units[0]))
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, units[0]))
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, slices.Concat(units[0], theirs, units[1])))
	n.carries(i.ID, withoutAddrs(i.Addresses, slices.Concat(units[0], units[1])...))
	n.untouched(other)
}

func takesFromNobody(n *node) {
	nobody := []string{"eni-of-nobody"}
	var gone []netip.Addr
	if n.spare() > 0 {
		i := n.create(1)
		n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
		nobody, gone = append(nobody, i.ID), i.Addresses
	}
	other := n.carrier(1) // it may well have the same addresses
	for _, id := range nobody {
		n.must(n.Cloud.UnassignAddresses(n.ctx, id, slices.Concat(gone, other.Addresses)))
	}
	n.carries(other.ID, other.Addresses)
}

// takesAgain comes to Late last: it may take what has come again to the ENI since.
func takesAgain(n *node) {
	i := n.carrier(1)
	for _, f := range []Failure{Partial, Throttled, LostAfterEffect, Late} {
		addrs := n.several(i, f)
		if addrs == nil {
			continue // no change is made of two requests
		}
		n.Inject("UnassignAddresses", f)
		n.is(n.Cloud.UnassignAddresses(n.ctx, i.ID, addrs), cloud.Kinds()...)
		n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, addrs))
		n.carries(i.ID, i.Addresses)
	}
}

// several puts addresses on the ENI that one UnassignAddresses is to take again, for
// Partial by several requests: nil if there are none such.
func (n *node) several(i cloud.Interface, failure Failure) []netip.Addr {
	n.Helper()
	if failure != Partial || n.Chunk == 0 {
		return n.assign(i.ID, 3)
	}
	if count := n.parts(n.family(), n.most(n.family())-len(ofFamily(i.Addresses, n.family()))); count > 0 {
		return n.put(i.ID, n.family(), count)
	}
	full := func(f eni.Family) bool { return countFamily(i, f)+n.some(f, 1) > n.most(f) }
	families := slices.DeleteFunc(n.families(i), full)
	if len(families) < 2 {
		return nil
	}
	var addrs []netip.Addr
	for _, f := range families { // each goes by requests of its own
		addrs = append(addrs, n.put(i.ID, f, n.some(f, 1))...)
	}
	return addrs
}

func givenAgain(n *node) {
	other, i := n.pair(1, 1)
	if n.spare() < 2 {
		other = i // nobody else is to have them
	}
	addrs := n.assign(i.ID, 2)
	n.Leave(n.first, 0)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, addrs))
	again := n.assign(other.ID, 2)
	n.carries(other.ID, with(other.Addresses, again...))
	if other.ID != i.ID {
		n.carries(i.ID, i.Addresses)
	}
}
