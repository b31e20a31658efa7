package cloudtest

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// reads is what the comments of Limits, Interfaces and Subnets say.
var reads = []sentence{
	{"Limits returns how many ENIs the instance may carry", []Capability{Quotas}, limitOfENIs},
	{"Limits returns how many addresses an ENI may carry", []Capability{Quotas}, limitOfAddresses},
	{"Interfaces returns every ENI that is attached", nil, everyAttached},
	{"Interfaces returns an ENI of CreateInterface that is not attached with index -1", []Capability{Faults, Secondary}, notYetAttached},
	{"Interfaces returns an ENI of CreateInterface that is no longer attached with index -1", []Capability{Detaching, Secondary}, noLongerAttached},
	{"Interfaces are in the order of their creation", []Capability{Secondary}, orderOfCreation},
	{"an Interface has the fields that its comments promise", nil, fieldsOfInterface},
	{"Subnets returns those for new ENIs and those of the node's ENIs", nil, subnetsOfNode},
	{"Subnets are sorted by ID", nil, subnetsSorted},
	{"Free is what is left in a subnet", nil, freeIsWhatIsLeft},
}

func limitOfENIs(node *node) {
	for range node.spareENIs() {
		node.createENI(1)
	}
	before, free := node.settledENIs(), node.findSubnet(node.first).Free
	if len(before) != node.limits.ENIs {
		node.Fatalf("the node has %d ENIs, want the limit of %d", len(before), node.limits.ENIs)
	}
	_, err := node.Cloud.CreateInterface(node.ctx, node.newCreate(1))
	node.checkKind(err, cloud.ErrLimit)
	node.checkUnchanged(before)
	if got := node.findSubnet(node.first).Free; got != free {
		node.Errorf("%d addresses are free, before the ENI that was refused they were %d", got, free)
	}
}

func limitOfAddresses(node *node) {
	iface := node.eniWith(1)
	for _, f := range node.familiesOf(iface) {
		most := node.mostInUnits(f)
		if room := most - countFamily(iface, f); room > 0 {
			_, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, f, room)
			node.must(err)
		}
		addrs, err := node.Cloud.AssignAddresses(node.ctx, iface.ID, f, node.addressesIn(f, 1))
		node.checkKind(err, cloud.ErrLimit)
		if len(addrs) != 0 {
			node.Errorf("with %d addresses the ENI got %v", most, addrs)
		}
	}
	// What was refused must not have come nevertheless.
	shown, _ := node.findENI(iface.ID)
	for _, f := range node.familiesOf(iface) {
		if got := countFamily(shown, f); got != node.mostInUnits(f) {
			node.Errorf("the full ENI has %d %s addresses, want %d", got, f, node.mostInUnits(f))
		}
	}
}

func countFamily(i cloud.Interface, f eni.Family) int {
	count := 0
	for _, a := range i.Addresses {
		if eni.FamilyOf(a) == f {
			count++
		}
	}
	return count
}

func everyAttached(node *node) {
	own := node.settledENIs()
	if len(own) != 1 || own[0].Index != 0 || own[0].Ours || own[0].Token != "" {
		node.Fatalf("a fresh node is shown %+v, want its primary ENI", own)
	}
	want := own
	for made := range min(node.spareENIs(), 2) {
		want = append(want, node.createENI(1+made))
	}
	if diff := diffENIs(want, node.settledENIs()); diff != "" {
		node.Errorf("Interfaces does not show what CreateInterface returned (-returned +shown):\n%s", diff)
	}
}

func notYetAttached(node *node) {
	request := node.newCreate(1)
	node.Inject("CreateInterface", LostAfterCreate)
	_, err := node.Cloud.CreateInterface(node.ctx, request)
	node.checkKind(err, cloud.ErrUnknown)
	i, ok := node.byToken(request.Token)
	if !ok || i.Index != -1 || !i.Ours {
		node.Errorf("an ENI that is made and not attached is shown as %+v", i)
	}
}

func noLongerAttached(node *node) {
	i := node.createENI(1)
	node.Detach(i.ID)
	var shown cloud.Interface
	node.waitUntil("an ENI that was detached is shown as attached", func() bool { shown, _ = node.findENI(i.ID); return shown.Index < 0 })
	i.Index = -1
	if diff := diffENIs([]cloud.Interface{i}, []cloud.Interface{shown}); diff != "" {
		node.Errorf("an ENI that was detached (-want +shown):\n%s", diff)
	}
}

func orderOfCreation(node *node) {
	want := []string{node.settledENIs()[0].ID}
	goes := node.createENI(1)
	if node.spareENIs() > 1 {
		want = append(want, node.createENI(1).ID)
	}
	node.must(node.Cloud.DeleteInterface(node.ctx, goes.ID))
	want = append(want, node.createENI(1).ID) // it may well get the index of the one that went
	var got []string
	for _, i := range node.settledENIs() {
		got = append(got, i.ID)
	}
	if !slices.Equal(want, got) {
		node.Errorf("Interfaces are %v, were made as %v", got, want)
	}
}

var macFormat = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

func fieldsOfInterface(node *node) {
	var request cloud.Create
	if node.spareENIs() > 0 {
		request = node.newCreate(3)
		_, err := node.Cloud.CreateInterface(node.ctx, request)
		node.must(err)
	} else {
		request.Subnet, request.V4 = node.primaryENI().Subnet, len(node.eniWith(3).Addresses)
	}
	list := node.settledENIs()
	here := node.findSubnet(node.first)
	for at, i := range list {
		switch {
		case i.ID == "" || i.Index != 0 && at == 0 || i.Index <= 0 && at > 0 || i.Index >= node.limits.ENIs:
			node.Errorf("ENI %q has index %d", i.ID, i.Index)
		case !macFormat.MatchString(i.MAC):
			node.Errorf("ENI %s has MAC %q, want lower case with colons", i.ID, i.MAC)
		case i.Created.IsZero():
			node.Errorf("ENI %s has no time of creation", i.ID)
		case i.Ours != (at > 0) || i.Ours != (i.Token != ""):
			node.Errorf("ENI %s is ours: %v, by token %q", i.ID, i.Ours, i.Token)
		}
	}
	made := list[len(list)-1]
	if made.Subnet != node.first || made.Token != request.Token || len(made.Addresses) != request.V4+request.V6 {
		node.Errorf("the ENI for %+v is %+v", request, made)
	}
	node.inSubnet(made, here)
}

// inSubnet checks the ENI's addresses: they are sorted, each is there once, and all are in the subnet
// or in its ranges for pods.
func (n *node) inSubnet(iface cloud.Interface, s cloud.Subnet) {
	n.Helper()
	if !slices.Equal(union(iface.Addresses), iface.Addresses) {
		n.Errorf("addresses %v of ENI %s are not sorted", iface.Addresses, iface.ID)
	}
	for _, family := range n.familiesOf(iface) {
		net := iface.Net(family)
		cidr := s.V4Net
		if family == eni.IPv6 {
			cidr = s.V6Net
		}
		if net.Primary.Masked() != cidr || slices.Contains(iface.Addresses, net.Primary.Addr()) {
			n.Errorf("ENI %s has primary %s in subnet %s, and addresses %v", iface.ID, net.Primary, cidr, iface.Addresses)
		}
		if !cidr.Contains(net.Gateway) && !net.Gateway.IsLinkLocalUnicast() {
			n.Errorf("ENI %s has gateway %s in subnet %s", iface.ID, net.Gateway, cidr)
		}
		for _, a := range iface.Addresses {
			within := func(p netip.Prefix) bool { return p.Contains(a) }
			if eni.FamilyOf(a) == family && (!slices.ContainsFunc(n.rangesOf(family, cidr), within) || a == net.Gateway) {
				n.Errorf("ENI %s has address %s, of %v, with gateway %s", iface.ID, a, n.rangesOf(family, cidr), net.Gateway)
			}
			if eni.FamilyOf(a) == family && !cidr.Contains(a) && !slices.ContainsFunc(iface.Pods, within) {
				n.Errorf("ENI %s has address %s, and tells that they come from %s and %v", iface.ID, a, cidr, iface.Pods)
			}
		}
	}
}

func subnetsOfNode(node *node) {
	for _, id := range node.Subnets {
		if node.spareENIs() == 0 {
			break // there are no new ENIs
		}
		if s := node.findSubnet(id); !s.New || !s.V4Net.IsValid() && !s.V6Net.IsValid() {
			node.Errorf("subnet %s, in which new ENIs may lie, is shown as %+v", id, s)
		}
	}
	node.findSubnet(node.settledENIs()[0].Subnet)
	i := node.eniWith(1)
	node.findSubnet(i.Subnet)
}

func subnetsSorted(node *node) {
	node.eniWith(1)
	list, err := node.Cloud.Subnets(node.ctx)
	node.must(err)
	if !slices.IsSortedFunc(list, func(a, b cloud.Subnet) int { return strings.Compare(a.ID, b.ID) }) {
		node.Errorf("subnets are not sorted by ID: %+v", list)
	}
}

func freeIsWhatIsLeft(node *node) {
	before := node.findSubnet(node.first).Free
	check := func(what string, used int) {
		node.Helper()
		if got := node.findSubnet(node.first).Free; got != before-used {
			node.Errorf("%s %d of %d addresses are free, want %d less", what, got, before, used)
		}
	}
	two, primary := node.addressesIn(node.firstFamily(), 2), 0
	if node.spareENIs() > 0 {
		primary = node.primaryCost()
	}
	i := node.eniWith(2)
	check("with an ENI of 2 addresses, or blocks of them,", primary+two)
	node.assignUnits(i.ID, 2)
	check("with 2 more", primary+2*two)
	node.must(node.Cloud.UnassignAddresses(node.ctx, i.ID, i.Addresses))
	check("with the first 2 gone", primary+two)
	node.discardENI(i)
	check("without any of it", 0)
}
