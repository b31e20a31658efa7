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
	{"AssignAddresses works on the node's primary ENI unless Limits say that it gets none", nil, putsOnOwn},
	{"AssignAddresses may return some together with an error", []Capability{Quotas}, someWithError},
	{"AssignAddresses returns ErrSubnetFull when no address is left", []Capability{Scarcity}, putsNothingInFull},
	{"AssignAddresses returns ErrNotFound when the node has no such ENI", nil, putsNowhere},
	{"AssignAddresses and UnassignAddresses change no ENI that another node has by now", []Capability{Moving, Secondary}, leavesWhatMoved},
	{"UnassignAddresses takes secondary addresses from the ENI", nil, takesSecondary},
	{"UnassignAddresses leaves primary addresses", nil, leavesPrimary},
	{"UnassignAddresses of what the ENI does not have is fine", nil, takesWhatIsNot},
	{"UnassignAddresses of an ENI that does not exist is fine", nil, takesFromNobody},
	{"UnassignAddresses is safe to ask again after an error", []Capability{Faults}, takesAgain},
	{"room of addresses that were taken is there again", []Capability{Scarcity}, givenAgain},
	{"DeleteInterface detaches and deletes an ENI with all its addresses", []Capability{Secondary}, deletesWithAddresses},
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

func putsAndReturns(node *node) {
	other, i := node.twoENIs(2, 1)
	most := node.addressesIn(node.firstFamily(), 3)
	addrs, err := node.Cloud.AssignAddresses(node.ctx, i.ID, node.firstFamily(), most)
	node.must(err)
	if len(addrs) == 0 || len(addrs) > most || len(union(addrs)) != len(addrs) {
		node.Fatalf("AssignAddresses(%d) = %v", most, addrs)
	}
	if slices.ContainsFunc(addrs, contains(i)) || slices.ContainsFunc(addrs, contains(other)) {
		node.Errorf("AssignAddresses = %v, which were there already", addrs)
	}
	node.checkCarries(i.ID, union(i.Addresses, addrs...))
	node.checkUntouched(other)
}

func putsOfFamily(node *node) {
	iface := node.eniWith(1)
	for _, f := range node.familiesOf(iface) {
		if countFamily(iface, f)+node.addressesIn(f, 2) > node.mostInUnits(f) {
			node.must(node.Cloud.UnassignAddresses(node.ctx, iface.ID, ofFamily(iface.Addresses, f)))
		}
		addrs, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, f, node.addressesIn(f, 2))
		node.must(err)
		for _, a := range addrs {
			if eni.FamilyOf(a) != f {
				node.Errorf("AssignAddresses of %s = %v", f, addrs)
			}
		}
	}
	shown, _ := node.findENI(iface.ID)
	node.inSubnet(shown, node.findSubnet(node.first))
}

func putsOnOwn(node *node) {
	own := node.settledENIs()[0]
	f := eni.IPv4
	if !own.V4.IsValid() {
		f = eni.IPv6
	}
	addrs, err := node.Cloud.AssignAddresses(node.ctx, own.ID, f, node.addressesIn(f, 1))
	if node.limits.NoPrimary {
		node.checkKind(err, cloud.ErrLimit)
		node.checkCarries(own.ID, union(own.Addresses, addrs...))
		node.checkCarries(own.ID, own.Addresses)
		return
	}
	node.must(err)
	node.checkCarries(own.ID, union(own.Addresses, addrs...))
	node.must(node.Cloud.UnassignAddresses(node.ctx, own.ID, addrs))
	node.checkCarries(own.ID, own.Addresses)
}

func someWithError(node *node) {
	i := node.eniWith(1)
	most := node.mostInUnits(node.firstFamily())
	addrs, err := node.Cloud.AssignAddresses(node.ctx, i.ID, node.firstFamily(), most)
	if err != nil {
		node.checkKind(err, cloud.ErrLimit)
	}
	if room := most - len(ofFamily(i.Addresses, node.firstFamily())); len(addrs) > room {
		node.Errorf("an ENI with room for %d got %v", room, addrs)
	}
	node.checkCarries(i.ID, union(i.Addresses, addrs...))
}

func putsNothingInFull(node *node) {
	iface := node.eniWith(1)
	node.Leave(node.first, 1)
	addrs, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, node.firstFamily(), node.addressesIn(node.firstFamily(), 2))
	if err != nil {
		node.checkKind(err, cloud.ErrSubnetFull)
	}
	node.checkCarries(iface.ID, union(iface.Addresses, addrs...))
	node.Leave(node.first, 0)
	none, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, node.firstFamily(), node.addressesIn(node.firstFamily(), 1))
	node.checkKind(err, cloud.ErrSubnetFull)
	if len(none) > 0 {
		node.Errorf("from a full subnet came %v", none)
	}
	node.checkCarries(iface.ID, union(iface.Addresses, addrs...))
}

func putsNowhere(node *node) {
	nowhere := []string{"eni-of-nobody"}
	if node.spareENIs() > 0 {
		i := node.createENI(1)
		node.must(node.Cloud.DeleteInterface(node.ctx, i.ID))
		nowhere = append(nowhere, i.ID)
	}
	for _, id := range nowhere {
		addrs, err := node.Cloud.AssignAddresses(node.ctx, id, node.firstFamily(), 1)
		node.checkKind(err, cloud.ErrNotFound)
		if len(addrs) > 0 {
			node.Errorf("ENI %s does not exist and got %v", id, addrs)
		}
	}
}

// leavesWhatMoved matters because pods of the other node use those addresses.
func leavesWhatMoved(node *node) {
	iface := node.createENI(2)
	node.Move(iface.ID)
	if node.Detach != nil {
		defer node.Detach(iface.ID) // so that it can be deleted
	}
	there := func() bool {
		list, err := node.Other.Interfaces(node.ctx)
		node.must(err)
		moved, ok := findIn(list, func(o cloud.Interface) bool { return o.ID == iface.ID })
		return ok && moved.Index >= 0 && slices.Equal(moved.Addresses, iface.Addresses)
	}
	node.waitUntil("the other node does not show the ENI that it has got", there)
	node.waitUntil("the node still shows the ENI that another one has", func() bool { _, shown := node.findENI(iface.ID); return !shown })
	got, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, node.firstFamily(), node.addressesIn(node.firstFamily(), 1))
	node.checkKind(err, cloud.ErrNotFound)
	if len(got) > 0 {
		node.Errorf("another node's ENI got %v", got)
	}
	if err := node.Cloud.UnassignAddresses(node.ctx, iface.ID, node.splitUnits(iface.Addresses)[0]); err != nil {
		node.checkKind(err, cloud.ErrNotFound)
	}
	node.waitForLag()
	if !there() {
		node.Errorf("the other node's ENI has not all of %v any more, or others too", iface.Addresses)
	}
}

func deletesWithAddresses(node *node) {
	free := node.findSubnet(node.first).Free
	before := node.settledENIs()
	i := node.createENI(3)
	node.must(node.Cloud.DeleteInterface(node.ctx, i.ID))
	node.checkUnchanged(before)
	if got := node.findSubnet(node.first).Free; got != free {
		node.Errorf("%d addresses are free, before the ENI they were %d", got, free)
	}
	node.createENI(1) // its place is free again
}

func deletesUnattached(node *node) {
	before := node.settledENIs()
	request := node.newCreate(1)
	node.Inject("CreateInterface", LostAfterCreate)
	_, err := node.Cloud.CreateInterface(node.ctx, request)
	node.checkKind(err, cloud.ErrUnknown)
	i, ok := node.byToken(request.Token)
	if !ok {
		node.Fatal("the ENI that was made is not shown")
	}
	node.must(node.Cloud.DeleteInterface(node.ctx, i.ID))
	node.checkUnchanged(before)
}

func deletesNothing(node *node) {
	nobody := []string{"eni-of-nobody", "eni-of-nobody"}
	if node.spareENIs() > 0 {
		i := node.createENI(1)
		nobody = append(nobody, i.ID, i.ID)
	}
	for _, id := range nobody {
		node.must(node.Cloud.DeleteInterface(node.ctx, id))
	}
}

func refusesOwn(node *node) {
	before := node.settledENIs()
	node.checkKind(node.Cloud.DeleteInterface(node.ctx, before[0].ID), cloud.ErrForbidden)
	node.checkUnchanged(before)
}
