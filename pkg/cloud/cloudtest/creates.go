package cloudtest

import (
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// creates is what the comments of CreateInterface and Create say.
var creates = []sentence{
	{"CreateInterface makes an ENI and attaches it to the node", []Capability{Secondary}, makesAndAttaches},
	{"CreateInterface returns when pods can use the addresses", []Capability{Usage, Secondary}, podsCanUse},
	{"CreateInterface begins with the addresses that are asked for", []Capability{Secondary}, addressesAskedFor},
	{"CreateInterface leaves nothing when the subnet does not exist", []Capability{Secondary}, nothingWithoutSubnet},
	{"CreateInterface leaves nothing when an ENI can't have that many addresses", []Capability{Quotas}, nothingBeyondLimit},
	{"CreateInterface leaves nothing when the subnet has no address", []Capability{Scarcity, Secondary}, nothingInFullSubnet},
	{"fewer addresses than asked for are no error where the subnet has no more", []Capability{Scarcity, Secondary}, fewerIsNoError},
	{"one address at least is there", []Capability{Scarcity, Secondary}, oneAtLeast},
	{"calls with the same token make one ENI", []Capability{Tokens, Secondary}, oneTokenOneENI},
	{"calls with different tokens make different ENIs", []Capability{Pair}, otherTokenOtherENI},
	{"a token may have 64 bytes", []Capability{Secondary}, longToken},
	{"a later call finishes an ENI that was made and not attached", []Capability{Tokens, Faults, Secondary}, finishesAfter(LostAfterCreate)},
	{"a later call finishes an ENI that was attached without its addresses", []Capability{Tokens, Faults, Secondary}, finishesAfter(LostAfterAttach)},
	{"a later call returns an ENI whose answer was lost", []Capability{Tokens, Faults, Secondary}, finishesAfter(LostAfterEffect)},
	{"a later call returns an ENI that comes late", []Capability{Tokens, Faults, Attached, Secondary}, finishesAfter(Late)},
	{"a later call attaches an ENI again that was detached", []Capability{Tokens, Detaching, Secondary}, attachesAgain},
	{"calls that failed before have no part in the ENI of a token", []Capability{Tokens, Faults, Secondary}, failedBefore},
}

func makesAndAttaches(node *node) {
	own := node.settledENIs()[0]
	request := node.newCreate(1)
	i, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	if i.ID == "" || i.ID == own.ID || i.MAC == own.MAC || i.Index < 1 || i.Index >= node.limits.ENIs {
		node.Errorf("the new ENI is %+v, the node's own %+v", i, own)
	}
	if !i.Ours || i.Token != request.Token || i.Subnet != request.Subnet {
		node.Errorf("the ENI for %+v is %+v", request, i)
	}
}

func podsCanUse(node *node) {
	i := node.createENI(2)
	node.Use(node.T, i)
}

func addressesAskedFor(node *node) {
	for _, f := range node.has {
		request, want := node.newCreate(0), node.addressesIn(f, 3)
		if f == eni.IPv4 {
			request.V4 = want
		} else {
			request.V6 = want
		}
		i, err := node.Cloud.CreateInterface(node.ctx, request)
		node.must(err)
		if len(i.Addresses) != want || countFamily(i, f) != want {
			node.Errorf("the ENI for %+v has %v", request, i.Addresses)
		}
		node.inSubnet(i, node.findSubnet(node.first))
		if node.spareENIs() < len(node.has) { // there is no room for one of each family
			node.discardENI(i)
		}
	}
}

func nothingWithoutSubnet(node *node) {
	before := node.settledENIs()
	request := node.newCreate(1)
	request.Subnet = "subnet-of-nobody"
	_, err := node.Cloud.CreateInterface(node.ctx, request)
	node.checkKind(err, cloud.ErrNotFound)
	node.checkUnchanged(before)
}

func nothingBeyondLimit(node *node) {
	before := node.settledENIs()
	request := node.newCreate(0)
	request.V4, request.V6 = node.limits.PerENI(eni.IPv4)+1, 0
	if node.firstFamily() == eni.IPv6 {
		request.V4, request.V6 = 0, node.limits.PerENI(eni.IPv6)+1
	}
	_, err := node.Cloud.CreateInterface(node.ctx, request)
	node.checkKind(err, cloud.ErrLimit)
	node.checkUnchanged(before)
}

func nothingInFullSubnet(node *node) {
	before := node.settledENIs()
	node.Leave(node.first, 0)
	_, err := node.Cloud.CreateInterface(node.ctx, node.newCreate(1))
	node.checkKind(err, cloud.ErrSubnetFull)
	node.checkUnchanged(before)
}

func fewerIsNoError(node *node) {
	node.Leave(node.first, 2+node.primaryCost())
	i, err := node.Cloud.CreateInterface(node.ctx, node.newCreate(4))
	node.must(err)
	if got := countFamily(i, node.firstFamily()); got != 2 {
		node.Errorf("the ENI has %d addresses where 2 were left: %+v", got, i)
	}
	node.checkCarries(i.ID, i.Addresses)
}

// oneAtLeast matters because an ENI without one would take an address and be of no use.
func oneAtLeast(node *node) {
	before := node.settledENIs()
	node.Leave(node.first, node.primaryCost())
	_, err := node.Cloud.CreateInterface(node.ctx, node.newCreate(4))
	node.checkKind(err, cloud.ErrSubnetFull)
	node.checkUnchanged(before)
	if free := node.findSubnet(node.first).Free; free != node.primaryCost() {
		node.Errorf("%d addresses are free, want the %d that were", free, node.primaryCost())
	}
}

func oneTokenOneENI(node *node) {
	request := node.newCreate(2)
	first, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	before := node.settledENIs()
	second, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	if diff := diffENIs([]cloud.Interface{first}, []cloud.Interface{second}); diff != "" {
		node.Errorf("the same token returned something else (-first +second):\n%s", diff)
	}
	node.checkUnchanged(before)
}

func otherTokenOtherENI(node *node) {
	a, b := node.createENI(1), node.createENI(1)
	if a.ID == b.ID || a.Index == b.Index || a.MAC == b.MAC || slices.ContainsFunc(a.Addresses, contains(b)) {
		node.Errorf("two ENIs have something in common: %+v, %+v", a, b)
	}
}

func longToken(node *node) {
	request := node.newCreate(1)
	request.Token += strings.Repeat("x", 64-len(request.Token))
	_, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	if _, ok := node.byToken(request.Token); !ok {
		node.Error("the ENI is not shown with its token")
	}
}

// finishesAfter tests a call after one with the same token has failed at this point.
func finishesAfter(at Failure) func(*node) {
	return func(node *node) {
		before := node.settledENIs()
		request := node.newCreate(2)
		node.Inject("CreateInterface", at)
		_, err := node.Cloud.CreateInterface(node.ctx, request)
		node.checkKind(err, cloud.ErrUnknown)
		i, err := node.Cloud.CreateInterface(node.ctx, request)
		node.must(err)
		if i.Index < 1 || len(i.Addresses) != request.V4+request.V6 || i.Token != request.Token {
			node.Errorf("the finished ENI is %+v", i)
		}
		node.checkUnchanged(append(before, i))
	}
}

func attachesAgain(node *node) {
	request := node.newCreate(2)
	i, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	node.Detach(i.ID)
	again, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	if diff := diffENIs([]cloud.Interface{i}, []cloud.Interface{again}); diff != "" {
		node.Errorf("the ENI attached again is another (-before +after):\n%s", diff)
	}
}

func failedBefore(node *node) {
	before := node.settledENIs()
	request := node.newCreate(1)
	node.Inject("CreateInterface", Throttled)
	node.Inject("CreateInterface", Unavailable)
	for range 2 {
		_, err := node.Cloud.CreateInterface(node.ctx, request)
		node.checkKind(err, cloud.ErrThrottled, cloud.ErrUnavailable)
	}
	i, err := node.Cloud.CreateInterface(node.ctx, request)
	node.must(err)
	node.checkUnchanged(append(before, i))
}
