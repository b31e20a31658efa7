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

func limitOfENIs(n *node) {
	for range n.spare() {
		n.create(1)
	}
	before, free := n.see(), n.subnet(n.first).Free
	if len(before) != n.limits.ENIs {
		n.Fatalf("the node has %d ENIs, want the limit of %d", len(before), n.limits.ENIs)
	}
	_, err := n.Cloud.CreateInterface(n.ctx, n.want(1))
	n.is(err, cloud.ErrLimit)
	n.unchanged(before)
	if got := n.subnet(n.first).Free; got != free {
		n.Errorf("%d addresses are free, before the ENI that was refused they were %d", got, free)
	}
}

func limitOfAddresses(n *node) {
	i := n.carrier(1)
	for _, f := range n.families(i) {
		most := n.most(f)
		if room := most - countFamily(i, f); room > 0 {
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
	for _, f := range n.families(i) {
		if got := countFamily(shown, f); got != n.most(f) {
			n.Errorf("the full ENI has %d %s addresses, want %d", got, f, n.most(f))
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

func everyAttached(n *node) {
	own := n.see()
	if len(own) != 1 || own[0].Index != 0 || own[0].Ours || own[0].Token != "" {
		n.Fatalf("a fresh node is shown %+v, want its own ENI", own)
	}
	want := own
	for made := range min(n.spare(), 2) {
		want = append(want, n.create(1+made))
	}
	if diff := diffENIs(want, n.see()); diff != "" {
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
	var shown cloud.Interface
	n.until("an ENI that was detached is shown as attached", func() bool { shown, _ = n.eni(i.ID); return shown.Index < 0 })
	i.Index = -1
	if diff := diffENIs([]cloud.Interface{i}, []cloud.Interface{shown}); diff != "" {
		n.Errorf("an ENI that was detached (-want +shown):\n%s", diff)
	}
}

func orderOfCreation(n *node) {
	want := []string{n.see()[0].ID}
	goes := n.create(1)
	if n.spare() > 1 {
		want = append(want, n.create(1).ID)
	}
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
	var wish cloud.Create
	if n.spare() > 0 {
		wish = n.want(3)
		_, err := n.Cloud.CreateInterface(n.ctx, wish)
		n.must(err)
	} else {
		wish.Subnet, wish.V4 = n.own().Subnet, len(n.carrier(3).Addresses)
	}
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
	made := list[len(list)-1]
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
	for _, f := range n.families(i) {
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
			within := func(p netip.Prefix) bool { return p.Contains(a) }
			if eni.FamilyOf(a) == f && (!slices.ContainsFunc(n.ranges(f, cidr), within) || a == net.Gateway) {
				n.Errorf("ENI %s has address %s, of %v, with gateway %s", i.ID, a, n.ranges(f, cidr), net.Gateway)
			}
			if eni.FamilyOf(a) == f && !cidr.Contains(a) && !slices.ContainsFunc(i.Pods, within) {
				n.Errorf("ENI %s has address %s, and tells that they come from %s and %v", i.ID, a, cidr, i.Pods)
			}
		}
	}
}

func subnetsOfNode(n *node) {
	for _, id := range n.Subnets {
		if n.spare() == 0 {
			break // there are no new ENIs
		}
		if s := n.subnet(id); !s.New || !s.V4Net.IsValid() && !s.V6Net.IsValid() {
			n.Errorf("subnet %s, in which new ENIs may lie, is shown as %+v", id, s)
		}
	}
	n.subnet(n.see()[0].Subnet)
	i := n.carrier(1)
	n.subnet(i.Subnet)
}

func subnetsSorted(n *node) {
	n.carrier(1)
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
	two, primary := n.some(n.family(), 2), 0
	if n.spare() > 0 {
		primary = n.primaries()
	}
	i := n.carrier(2)
	check("with an ENI of 2 addresses, or blocks of them,", primary+two)
	n.assign(i.ID, 2)
	check("with 2 more", primary+2*two)
	n.must(n.Cloud.UnassignAddresses(n.ctx, i.ID, i.Addresses))
	check("with the first 2 gone", primary+two)
	n.discard(i)
	check("without any of it", 0)
}
