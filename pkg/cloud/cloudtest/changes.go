package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// changes is what the comments of AssignAddresses, UnassignAddresses and
// DeleteInterface say.
var changes = []sentence{
	{"AssignAddresses puts up to n more addresses on the ENI and returns those", nil, putsAndReturns},
	{"AssignAddresses puts addresses of the family", nil, putsOfFamily},
	{"AssignAddresses works on the node's own ENI unless Limits say that it gets none", nil, putsOnOwn},
	{"AssignAddresses may return some together with an error", []Capability{Quotas}, someWithError},
	{"AssignAddresses returns ErrSubnetFull when no address is left", []Capability{Scarcity}, putsNothingInFull},
	{"AssignAddresses returns ErrNotFound when the node has no such ENI", nil, putsNowhere},
	{"AssignAddresses and UnassignAddresses change no ENI that another node has by now", []Capability{Moving, Secondary}, leavesWhatMoved},
	{"UnassignAddresses takes secondary addresses from the ENI", nil, takes},
	{"UnassignAddresses leaves primary addresses", nil, leavesPrimary},
	{"UnassignAddresses of what the ENI does not have is fine", nil, takesWhatIsNot},
	{"UnassignAddresses of an ENI that does not exist is fine", nil, takesFromNobody},
	{"UnassignAddresses is safe to ask again after an error", []Capability{Faults}, takesAgain},
	{"room of addresses that were taken is there again", []Capability{Scarcity}, givenAgain},
	{"DeleteInterface detaches and deletes an ENI with all its addresses", []Capability{Secondary}, deletes},
	{"DeleteInterface deletes an ENI that is not attached", []Capability{Faults, Secondary}, deletesUnattached},
	{"DeleteInterface of an ENI that does not exist is fine", nil, deletesNothing},
	{"DeleteInterface refuses an ENI that CreateInterface did not make", []Capability{Guard}, refusesOwn},
}

// contains tells whether an address is one of the ENI's.
func contains(i cloud.Interface) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		return slices.Contains(i.Addresses, a) || i.V4.Primary.Addr() == a || i.V6.Primary.Addr() == a
	}
}

// ofFamily returns those of the family.
func ofFamily(addrs []netip.Addr, f eni.Family) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return eni.FamilyOf(a) != f })
}

func putsAndReturns(n *node) {
	other, i := n.pair(2, 1)
	most := n.some(n.family(), 3)
	addrs, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), most)
	n.must(err)
	if len(addrs) == 0 || len(addrs) > most || len(with(addrs)) != len(addrs) {
		n.Fatalf("AssignAddresses(%d) = %v", most, addrs)
	}
	if slices.ContainsFunc(addrs, contains(i)) || slices.ContainsFunc(addrs, contains(other)) {
		n.Errorf("AssignAddresses = %v, which were there already", addrs)
	}
	n.carries(i.ID, with(i.Addresses, addrs...))
	n.untouched(other)
}

func putsOfFamily(n *node) {
	i := n.carrier(1)
	for _, f := range n.families(i) {
		if countFamily(i, f)+n.some(f, 2) > n.most(f) {
			n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, ofFamily(i.Addresses, f)))
		}
		addrs, err := n.Cloud.AssignAddresses(n.ctx, i.ID, f, n.some(f, 2))
		n.must(err)
		for _, a := range addrs {
			if eni.FamilyOf(a) != f {
				n.Errorf("AssignAddresses of %s = %v", f, addrs)
			}
		}
	}
	shown, _ := n.eni(i.ID)
	n.inSubnet(shown, n.subnet(n.first))
}

func putsOnOwn(n *node) {
	own := n.see()[0]
	f := eni.IPv4
	if !own.V4.IsValid() {
		f = eni.IPv6
	}
	addrs, err := n.Cloud.AssignAddresses(n.ctx, own.ID, f, n.some(f, 1))
	if n.limits.NoPrimary {
		n.is(err, cloud.ErrLimit)
		n.carries(own.ID, with(own.Addresses, addrs...))
		n.carries(own.ID, own.Addresses)
		return
	}
	n.must(err)
	n.carries(own.ID, with(own.Addresses, addrs...))
	n.must(n.Cloud.UnassignAddresses(n.ctx, own.ID, addrs))
	n.carries(own.ID, own.Addresses)
}

func someWithError(n *node) {
	i := n.carrier(1)
	most := n.most(n.family())
	addrs, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), most)
	if err != nil {
		n.is(err, cloud.ErrLimit)
	}
	if room := most - len(ofFamily(i.Addresses, n.family())); len(addrs) > room {
		n.Errorf("an ENI with room for %d got %v", room, addrs)
	}
	n.carries(i.ID, with(i.Addresses, addrs...))
}

func putsNothingInFull(n *node) {
	i := n.carrier(1)
	n.Leave(n.first, 1)
	addrs, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), n.some(n.family(), 2))
	if err != nil {
		n.is(err, cloud.ErrSubnetFull)
	}
	n.carries(i.ID, with(i.Addresses, addrs...))
	n.Leave(n.first, 0)
	none, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), n.some(n.family(), 1))
	n.is(err, cloud.ErrSubnetFull)
	if len(none) > 0 {
		n.Errorf("from a full subnet came %v", none)
	}
	n.carries(i.ID, with(i.Addresses, addrs...))
}

func putsNowhere(n *node) {
	nowhere := []string{"eni-of-nobody"}
	if n.spare() > 0 {
		i := n.create(1)
		n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
		nowhere = append(nowhere, i.ID)
	}
	for _, id := range nowhere {
		addrs, err := n.Cloud.AssignAddresses(n.ctx, id, n.family(), 1)
		n.is(err, cloud.ErrNotFound)
		if len(addrs) > 0 {
			n.Errorf("ENI %s does not exist and got %v", id, addrs)
		}
	}
}

// leavesWhatMoved: pods of the other node use those addresses.
func leavesWhatMoved(n *node) {
	i := n.create(2)
	n.Move(i.ID)
	if n.Detach != nil {
		defer n.Detach(i.ID) // so that it can be deleted
	}
	there := func() bool {
		list, err := n.Other.Interfaces(n.ctx)
		n.must(err)
		moved, ok := find(list, func(o cloud.Interface) bool { return o.ID == i.ID })
		return ok && moved.Index >= 0 && slices.Equal(moved.Addresses, i.Addresses)
	}
	n.until("the other node does not show the ENI that it has got", there)
	n.until("the node still shows the ENI that another one has", func() bool { _, shown := n.eni(i.ID); return !shown })
	got, err := n.Cloud.AssignAddresses(n.ctx, i.ID, n.family(), n.some(n.family(), 1))
	n.is(err, cloud.ErrNotFound)
	if len(got) > 0 {
		n.Errorf("another node's ENI got %v", got)
	}
	if err := n.Cloud.UnassignAddresses(n.ctx, i.ID, n.units(i.Addresses)[0]); err != nil {
		n.is(err, cloud.ErrNotFound)
	}
	n.settle()
	if !there() {
		n.Errorf("the other node's ENI has not all of %v any more, or others too", i.Addresses)
	}
}

func deletes(n *node) {
	free := n.subnet(n.first).Free
	before := n.see()
	i := n.create(3)
	n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
	n.unchanged(before)
	if got := n.subnet(n.first).Free; got != free {
		n.Errorf("%d addresses are free, before the ENI they were %d", got, free)
	}
	n.create(1) // its place is free again
}

func deletesUnattached(n *node) {
	before := n.see()
	wish := n.want(1)
	n.Inject("CreateInterface", LostAfterCreate)
	_, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.is(err, cloud.ErrUnknown)
	i, ok := n.byToken(wish.Token)
	if !ok {
		n.Fatal("the ENI that was made is not shown")
	}
	n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
	n.unchanged(before)
}

func deletesNothing(n *node) {
	nobody := []string{"eni-of-nobody", "eni-of-nobody"}
	if n.spare() > 0 {
		i := n.create(1)
		nobody = append(nobody, i.ID, i.ID)
	}
	for _, id := range nobody {
		n.must(n.Cloud.DeleteInterface(n.ctx, id))
	}
}

func refusesOwn(n *node) {
	before := n.see()
	n.is(n.Cloud.DeleteInterface(n.ctx, before[0].ID), cloud.ErrForbidden)
	n.unchanged(before)
}
