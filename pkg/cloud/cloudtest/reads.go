package cloudtest

import (
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
	{"Interfaces returns an ENI of CreateInterface that is not attached with index -1", []Capability{Faults}, notYetAttached},
	{"Interfaces returns an ENI of CreateInterface that is no longer attached with index -1", []Capability{Detaching}, noLongerAttached},
	{"Interfaces are in the order of their creation", nil, orderOfCreation},
	{"an Interface has the fields that its comments promise", nil, fieldsOfInterface},
	{"Subnets returns those for new ENIs and those of the node's ENIs", nil, subnetsOfNode},
	{"Subnets are sorted by ID", nil, subnetsSorted},
	{"Free is what is left in a subnet", nil, freeIsWhatIsLeft},
}

func limitOfENIs(n *node) {
	for range n.limits.ENIs - 1 {
		n.create(1)
	}
	before := n.see()
	if len(before) != n.limits.ENIs {
		n.Fatalf("the node has %d ENIs, want the limit of %d", len(before), n.limits.ENIs)
	}
	_, err := n.Cloud.CreateInterface(n.ctx, n.want(1))
	n.is(err, cloud.ErrLimit)
	n.unchanged(before)
}

func limitOfAddresses(n *node) {
	i := n.create(1)
	for _, f := range n.has {
		most := n.most(f)
		if room := most - count(i, f); room > 0 {
			_, err := n.Cloud.AssignAddresses(n.ctx, i.ID, f, room)
			n.must(err)
		}
		addrs, err := n.Cloud.AssignAddresses(n.ctx, i.ID, f, n.some(f, 1))
		n.is(err, cloud.ErrLimit)
		if len(addrs) != 0 {
			n.Errorf("with %d addresses the ENI got %v", most, addrs)
		}
	}
	shown, _ := n.eni(i.ID)
	for _, f := range n.has {
		if got := count(shown, f); got != n.most(f) {
			n.Errorf("the full ENI has %d %s addresses, want %d", got, f, n.most(f))
		}
	}
}

func count(i cloud.Interface, f eni.Family) int {
	count := 0
	for _, a := range i.Addresses {
		if eni.FamilyOf(a) == f {
			count++
		}
	}
	return count
}

func everyAttached(n *node) {
	own := n.see()
	if len(own) != 1 || own[0].Index != 0 || own[0].Ours || own[0].Token != "" {
		n.Fatalf("a fresh node is shown %+v, want its own ENI", own)
	}
	want := append(own, n.create(1), n.create(2))
	if diff := diff(want, n.see()); diff != "" {
		n.Errorf("Interfaces does not show what CreateInterface returned (-returned +shown):\n%s", diff)
	}
}

func notYetAttached(n *node) {
	wish := n.want(1)
	n.Inject("CreateInterface", LostAfterCreate)
	_, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.is(err, cloud.ErrUnknown)
	i, ok := n.byToken(wish.Token)
	if !ok || i.Index != -1 || !i.Ours {
		n.Errorf("an ENI that is made and not attached is shown as %+v", i)
	}
}

func noLongerAttached(n *node) {
	i := n.create(1)
	n.Detach(i.ID)
	i.Index = -1
	shown, _ := n.eni(i.ID)
	if diff := diff([]cloud.Interface{i}, []cloud.Interface{shown}); diff != "" {
		n.Errorf("an ENI that was detached (-want +shown):\n%s", diff)
	}
}

func orderOfCreation(n *node) {
	want := []string{n.see()[0].ID}
	goes := n.create(1)
	want = append(want, n.create(1).ID)
	n.must(n.Cloud.DeleteInterface(n.ctx, goes.ID))
	want = append(want, n.create(1).ID) // it may well get the index of the one that went
	var got []string
	for _, i := range n.see() {
		got = append(got, i.ID)
	}
	if !slices.Equal(want, got) {
		n.Errorf("Interfaces are %v, were made as %v", got, want)
	}
}

var macFormat = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

func fieldsOfInterface(n *node) {
	wish := n.want(3)
	_, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	list := n.see()
	here := n.subnet(n.first)
	for at, i := range list {
		switch {
		case i.ID == "" || i.Index != 0 && at == 0 || i.Index <= 0 && at > 0 || i.Index >= n.limits.ENIs:
			n.Errorf("ENI %q has index %d", i.ID, i.Index)
		case !macFormat.MatchString(i.MAC):
			n.Errorf("ENI %s has MAC %q, want lower case with colons", i.ID, i.MAC)
		case i.Created.IsZero():
			n.Errorf("ENI %s has no time of creation", i.ID)
		case i.Ours != (at > 0) || i.Ours != (i.Token != ""):
			n.Errorf("ENI %s is ours: %v, by token %q", i.ID, i.Ours, i.Token)
		}
	}
	made := list[1]
	if made.Subnet != n.first || made.Token != wish.Token || len(made.Addresses) != wish.V4+wish.V6 {
		n.Errorf("the ENI for %+v is %+v", wish, made)
	}
	n.inSubnet(made, here)
}

// inSubnet looks at the ENI's addresses: sorted, each once, in the subnet.
func (n *node) inSubnet(i cloud.Interface, s cloud.Subnet) {
	n.Helper()
	if !slices.Equal(with(i.Addresses), i.Addresses) {
		n.Errorf("addresses %v of ENI %s are not sorted", i.Addresses, i.ID)
	}
	for _, f := range n.has {
		net := i.Net(f)
		cidr := s.V4Net
		if f == eni.IPv6 {
			cidr = s.V6Net
		}
		if net.Primary.Masked() != cidr || slices.Contains(i.Addresses, net.Primary.Addr()) {
			n.Errorf("ENI %s has primary %s in subnet %s, and addresses %v", i.ID, net.Primary, cidr, i.Addresses)
		}
		if !cidr.Contains(net.Gateway) && !net.Gateway.IsLinkLocalUnicast() {
			n.Errorf("ENI %s has gateway %s in subnet %s", i.ID, net.Gateway, cidr)
		}
		for _, a := range i.Addresses {
			if eni.FamilyOf(a) == f && (!cidr.Contains(a) || a == net.Gateway) {
				n.Errorf("ENI %s has address %s in subnet %s with gateway %s", i.ID, a, cidr, net.Gateway)
			}
		}
	}
}

func subnetsOfNode(n *node) {
	for _, id := range n.Subnets {
		if s := n.subnet(id); !s.New || !s.V4Net.IsValid() && !s.V6Net.IsValid() {
			n.Errorf("subnet %s, in which new ENIs may lie, is shown as %+v", id, s)
		}
	}
	n.subnet(n.see()[0].Subnet)
	i := n.create(1)
	n.subnet(i.Subnet)
}

func subnetsSorted(n *node) {
	n.create(1)
	list, err := n.Cloud.Subnets(n.ctx)
	n.must(err)
	if !slices.IsSortedFunc(list, func(a, b cloud.Subnet) int { return strings.Compare(a.ID, b.ID) }) {
		n.Errorf("subnets are not sorted by ID: %+v", list)
	}
}

func freeIsWhatIsLeft(n *node) {
	before := n.subnet(n.first).Free
	check := func(what string, used int) {
		n.Helper()
		if got := n.subnet(n.first).Free; got != before-used {
			n.Errorf("%s %d of %d addresses are free, want %d less", what, got, before, used)
		}
	}
	two := n.some(n.family(), 2)
	i := n.create(2)
	check("with an ENI of 2 addresses, or blocks of them,", 1+two)
	n.assign(i.ID, 2)
	check("with 2 more", 1+2*two)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, i.Addresses))
	check("with the first 2 gone", 1+two)
	n.must(n.Cloud.DeleteInterface(n.ctx, i.ID))
	check("without the ENI", 0)
}
