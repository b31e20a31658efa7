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
	{"CreateInterface leaves nothing when an ENI may not have so many addresses", []Capability{Quotas}, nothingBeyondLimit},
	{"CreateInterface leaves nothing when the subnet has no address", []Capability{Scarcity, Secondary}, nothingInFullSubnet},
	{"fewer addresses than asked for are no error where the subnet has no more", []Capability{Scarcity, Secondary}, fewerIsNoError},
	{"one address at least is there", []Capability{Scarcity, Secondary}, oneAtLeast},
	{"calls with the same token make one ENI", []Capability{Tokens, Secondary}, oneTokenOneENI},
	{"calls with different tokens make different ENIs", []Capability{Pair}, otherTokenOtherENI},
	{"a token may have 64 bytes", []Capability{Secondary}, longToken},
	{"a later call finishes an ENI that was made and not attached", []Capability{Tokens, Faults, Secondary}, finishes(LostAfterCreate)},
	{"a later call finishes an ENI that was attached without its addresses", []Capability{Tokens, Faults, Secondary}, finishes(LostAfterAttach)},
	{"a later call returns an ENI whose answer was lost", []Capability{Tokens, Faults, Secondary}, finishes(LostAfterEffect)},
	{"a later call returns an ENI that comes late", []Capability{Tokens, Faults, Attached, Secondary}, finishes(Late)},
	{"a later call attaches an ENI again that was detached", []Capability{Tokens, Detaching, Secondary}, attachesAgain},
	{"calls that failed before have no part in the ENI of a token", []Capability{Tokens, Faults, Secondary}, failedBefore},
}

func makesAndAttaches(n *node) {
	own := n.see()[0]
	wish := n.want(1)
	i, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	if i.ID == "" || i.ID == own.ID || i.MAC == own.MAC || i.Index < 1 || i.Index >= n.limits.ENIs {
		n.Errorf("the new ENI is %+v, the node's own %+v", i, own)
	}
	if !i.Ours || i.Token != wish.Token || i.Subnet != wish.Subnet {
		n.Errorf("the ENI for %+v is %+v", wish, i)
	}
}

func podsCanUse(n *node) {
	i := n.create(2)
	n.Use(n.T, i)
}

func addressesAskedFor(n *node) {
	for _, f := range n.has {
		wish, want := n.want(0), n.some(f, 3)
		if f == eni.IPv4 {
			wish.V4 = want
		} else {
			wish.V6 = want
		}
		i, err := n.Cloud.CreateInterface(n.ctx, wish)
		n.must(err)
		if len(i.Addresses) != want || countFamily(i, f) != want {
			n.Errorf("the ENI for %+v has %v", wish, i.Addresses)
		}
		n.inSubnet(i, n.subnet(n.first))
		if n.spare() < len(n.has) { // there is no room for one of each family
			n.discard(i)
		}
	}
}

func nothingWithoutSubnet(n *node) {
	before := n.see()
	wish := n.want(1)
	wish.Subnet = "subnet-of-nobody"
	_, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.is(err, cloud.ErrNotFound)
	n.unchanged(before)
}

func nothingBeyondLimit(n *node) {
	before := n.see()
	wish := n.want(0)
	wish.V4, wish.V6 = n.limits.PerENI(eni.IPv4)+1, 0
	if n.family() == eni.IPv6 {
		wish.V4, wish.V6 = 0, n.limits.PerENI(eni.IPv6)+1
	}
	_, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.is(err, cloud.ErrLimit)
	n.unchanged(before)
}

func nothingInFullSubnet(n *node) {
	before := n.see()
	n.Leave(n.first, 0)
	_, err := n.Cloud.CreateInterface(n.ctx, n.want(1))
	n.is(err, cloud.ErrSubnetFull)
	n.unchanged(before)
}

func fewerIsNoError(n *node) {
	n.Leave(n.first, 2+n.primaries())
	i, err := n.Cloud.CreateInterface(n.ctx, n.want(4))
	n.must(err)
	if got := countFamily(i, n.family()); got != 2 {
		n.Errorf("the ENI has %d addresses where 2 were left: %+v", got, i)
	}
	n.carries(i.ID, i.Addresses)
}

// oneAtLeast: without it the ENI would hold an address and be of no use.
func oneAtLeast(n *node) {
	before := n.see()
	n.Leave(n.first, n.primaries())
	_, err := n.Cloud.CreateInterface(n.ctx, n.want(4))
	n.is(err, cloud.ErrSubnetFull)
	n.unchanged(before)
	if free := n.subnet(n.first).Free; free != n.primaries() {
		n.Errorf("%d addresses are free, want the %d that were", free, n.primaries())
	}
}

func oneTokenOneENI(n *node) {
	wish := n.want(2)
	first, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	before := n.see()
	second, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	if diff := diffENIs([]cloud.Interface{first}, []cloud.Interface{second}); diff != "" {
		n.Errorf("the same token returned something else (-first +second):\n%s", diff)
	}
	n.unchanged(before)
}

func otherTokenOtherENI(n *node) {
	a, b := n.create(1), n.create(1)
	if a.ID == b.ID || a.Index == b.Index || a.MAC == b.MAC || slices.ContainsFunc(a.Addresses, contains(b)) {
		n.Errorf("two ENIs have something in common: %+v, %+v", a, b)
	}
}

func longToken(n *node) {
	wish := n.want(1)
	wish.Token += strings.Repeat("x", 64-len(wish.Token))
	_, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	if _, ok := n.byToken(wish.Token); !ok {
		n.Error("the ENI is not shown with its token")
	}
}

// finishes: an earlier call with the token failed somewhere in between.
func finishes(at Failure) func(*node) {
	return func(n *node) {
		before := n.see()
		wish := n.want(2)
		n.Inject("CreateInterface", at)
		_, err := n.Cloud.CreateInterface(n.ctx, wish)
		n.is(err, cloud.ErrUnknown)
		i, err := n.Cloud.CreateInterface(n.ctx, wish)
		n.must(err)
		if i.Index < 1 || len(i.Addresses) != wish.V4+wish.V6 || i.Token != wish.Token {
			n.Errorf("the finished ENI is %+v", i)
		}
		n.unchanged(append(before, i))
	}
}

func attachesAgain(n *node) {
	wish := n.want(2)
	i, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	n.Detach(i.ID)
	again, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	if diff := diffENIs([]cloud.Interface{i}, []cloud.Interface{again}); diff != "" {
		n.Errorf("the ENI attached again is another (-before +after):\n%s", diff)
	}
}

func failedBefore(n *node) {
	before := n.see()
	wish := n.want(1)
	n.Inject("CreateInterface", Throttled)
	n.Inject("CreateInterface", Unavailable)
	for range 2 {
		_, err := n.Cloud.CreateInterface(n.ctx, wish)
		n.is(err, cloud.ErrThrottled, cloud.ErrUnavailable)
	}
	i, err := n.Cloud.CreateInterface(n.ctx, wish)
	n.must(err)
	n.unchanged(append(before, i))
}
