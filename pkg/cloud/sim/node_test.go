package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// create makes an ENI for the node, with count addresses of IPv4.
func create(t *testing.T, n cloud.Cloud, token string, count int) cloud.Interface {
	t.Helper()
	i, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a", V4: count})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// assign puts count addresses of IPv4 on an ENI.
func assign(t *testing.T, n cloud.Cloud, id string, count int) []netip.Addr {
	t.Helper()
	addrs, err := n.AssignAddresses(t.Context(), id, eni.IPv4, count)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

// whole fails the test at its end if the account is not as it should be.
func whole(t *testing.T, a *Account) *Account {
	t.Helper()
	t.Cleanup(func() { must(t, a.Check()) })
	return a
}

func TestANodeComesWithItsOwnENI(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	got := a.Snapshot().Nodes["n2"]
	want := []cloud.Interface{{ID: "eni-00000002", Index: 0, MAC: "02:32:57:f6:a6:4b", Subnet: "a", Created: got[0].Created,
		V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.3/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
		V6: eni.Net{Primary: netip.MustParsePrefix("fd00:10::3/64"), Gateway: netip.MustParseAddr("fd00:10::1")}}}
	if diff := cmp.Diff(want, got, plain...); diff != "" {
		t.Errorf("the node's ENIs (-want +got):\n%s", diff)
	}
	if owner := a.Snapshot().Owners[netip.MustParseAddr("10.0.0.3")]; owner != "eni-00000002" {
		t.Errorf("10.0.0.3 is of %q", owner)
	}
}

func TestAWrongSubnetOrNodeIsRefused(t *testing.T) {
	a := whole(t, newAccount(t, Options{MaxENIs: 3}))
	prefix := netip.MustParsePrefix
	good := eni.Limits{ENIs: 2, V4: 2}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{a.AddSubnet(Subnet{ID: "c"}), "add subnet c: it needs an ID and an address range"},
		{a.AddSubnet(Subnet{V4: prefix("10.0.2.0/24")}), "add subnet : it needs an ID and an address range"},
		{a.AddSubnet(Subnet{ID: "c", V4: prefix("10.0.2.1/24")}), "add subnet c: 10.0.2.1/24 is no network of at least 4 addresses"},
		{a.AddSubnet(Subnet{ID: "c", V4: prefix("10.0.2.0/31")}), "add subnet c: 10.0.2.0/31 is no network of at least 4 addresses"},
		{a.AddSubnet(Subnet{ID: "c", V4: prefix("fd00::/64")}), "add subnet c: fd00::/64 and invalid Prefix are not of IPv4 and IPv6"},
		{a.AddSubnet(Subnet{ID: "c", V4: prefix("10.0.0.0/16")}), "add subnet c: it overlaps subnet "},
		{a.AddSubnet(Subnet{ID: "a", V4: prefix("10.0.2.0/24")}), "add subnet a: it overlaps subnet a"},
		{addNode(a, NodeSpec{Name: "n1", Limits: good, Subnet: "a"}), "add node n1: the account has one of that name"},
		{addNode(a, NodeSpec{Name: "n/3", Limits: good, Subnet: "a"}), `add node n/3: name "n/3": must be one word`},
		{addNode(a, NodeSpec{Name: "n3", Limits: good, Subnet: "c"}), `add node n3: there is no subnet "c"`},
		{addNode(a, NodeSpec{Name: "n3", Limits: good, Subnet: "a", New: []string{"c"}}), `add node n3: there is no subnet "c"`},
		{addNode(a, NodeSpec{Name: "n3", Subnet: "a"}), "add node n3: limits of 0 ENIs with 0 IPv4 and 0 IPv6 addresses: must be"},
		{addNode(a, NodeSpec{Name: "n3", Limits: eni.Limits{ENIs: 152, V4: 2}, Subnet: "a"}), "add node n3: limits of 152 ENIs with 2 IPv4 and 0 IPv6 addresses: must be 1 to 151 ENIs"},
		{addNode(a, NodeSpec{Name: "n3", Limits: good, Subnet: "a"}), ""},
		{addNode(a, NodeSpec{Name: "n4", Limits: good, Subnet: "a"}), "add node n4: interface limit of the account: the account may have 3 ENIs"},
		{a.SetUnmanaged("c", 1), "set others' use: no such subnet c"},
		{a.TakeAway(netip.MustParseAddr("10.0.0.2")), "take away 10.0.0.2: no ENI has it as a secondary address"},
		{a.Detach("eni-00000001"), "detach ENI eni-00000001: incorrect state eni-00000001: it is a node's own"},
	} {
		if !strings.HasPrefix(fmt.Sprint(tt.err), tt.want) || (tt.want == "") != (tt.err == nil) {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
}

func addNode(a *Account, m NodeSpec) error {
	_, err := a.AddNode(m)
	return err
}

func TestANodeSeesTheSubnetsThatAreForItAndThoseItHas(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	n, err := a.AddNode(NodeSpec{Name: "n3", Limits: eni.Limits{ENIs: 2, V4: 2}, Subnet: "a", New: []string{"b"}})
	must(t, err)
	got, err := n.Subnets(t.Context())
	must(t, err)
	prefix := netip.MustParsePrefix
	want := []cloud.Subnet{
		{ID: "a", V4Net: prefix("10.0.0.0/24"), Free: 256 - 3 - 3},
		{ID: "b", V4Net: prefix("10.0.1.0/24"), Free: 256 - 3, New: true},
	}
	if diff := cmp.Diff(want, got, plain...); diff != "" {
		t.Errorf("subnets of a node (-want +got):\n%s", diff)
	}
}

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
}

func TestWhatANodeOfNobodyAsksIsNotFound(t *testing.T) {
	n := newAccount(t, Options{}).Node("n9")
	_, err := n.Limits(t.Context())
	wantKind(t, err, cloud.ErrNotFound)
	_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "a"})
	wantKind(t, err, cloud.ErrNotFound)
	if want := "CreateInterface a: not found: no such instance n9"; fmt.Sprint(err) != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestATokenMayNotBeEmptyOrLong(t *testing.T) {
	n := whole(t, newAccount(t, Options{})).Node("n1")
	for _, token := range []string{"", strings.Repeat("x", 65)} {
		_, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "a"})
		wantKind(t, err, cloud.ErrForbidden)
	}
}

func TestATokenIsOneNodesOwn(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	if create(t, a.Node("n1"), "t", 1).ID == create(t, a.Node("n2"), "t", 1).ID {
		t.Error("two nodes have one ENI")
	}
}

func TestAnENIGetsTheLowestFreeIndex(t *testing.T) {
	n := whole(t, newAccount(t, Options{})).Node("n1")
	first := create(t, n, "t1", 1)
	create(t, n, "t2", 1)
	must(t, n.DeleteInterface(t.Context(), first.ID))
	if got := create(t, n, "t3", 1).Index; got != 1 {
		t.Errorf("the new ENI has index %d, want 1", got)
	}
	if got := create(t, n, "t4", 1).Index; got != 3 {
		t.Errorf("the new ENI has index %d, want 3", got)
	}
}

func TestTheAccountHasAQuotaOfENIs(t *testing.T) {
	a := whole(t, newAccount(t, Options{MaxENIs: 3}))
	create(t, a.Node("n1"), "t1", 1)
	_, err := a.Node("n2").CreateInterface(t.Context(), cloud.Create{Token: "t2", Subnet: "a"})
	wantKind(t, err, cloud.ErrLimit)
}

func TestFreedAddressesComeAgainInTheOrderOfReuse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		order Reuse
		want  string
	}{
		{"the lowest, but not the one freed last", ReuseLowest, "10.0.0.4 10.0.0.5 10.0.0.8"},
		{"the one freed last", ReuseLatest, "10.0.0.6 10.0.0.4 10.0.0.5"},
		{"those that nobody had", ReuseOldest, "10.0.0.8 10.0.0.9 10.0.0.10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := whole(t, newAccount(t, Options{Reuse: tt.order})).Node("n1")
			own, err := n.Interfaces(t.Context())
			must(t, err)
			id := own[0].ID
			assign(t, n, id, 4) // .4 to .7
			for _, a := range addrs("10.0.0.5", "10.0.0.4", "10.0.0.6") {
				must(t, n.UnassignAddresses(t.Context(), id, []netip.Addr{a}))
			}
			var got []string
			for range 3 {
				got = append(got, assign(t, n, id, 1)[0].String())
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("addresses came as %v, want %s", got, tt.want)
			}
		})
	}
}

func TestTheAddressFreedLastComesIfThereIsNoOther(t *testing.T) {
	for _, order := range []Reuse{ReuseLowest, ReuseLatest, ReuseOldest} {
		a := NewAccount(Options{Reuse: order})
		must(t, a.AddSubnet(Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/29")}))
		n, err := a.AddNode(NodeSpec{Name: "n", Limits: eni.Limits{ENIs: 1, V4: 9}, Subnet: "a"})
		must(t, err)
		id := a.Snapshot().Nodes["n"][0].ID
		got := assign(t, n, id, 4)
		if want := addrs("10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"); !slices.Equal(want, got) {
			t.Errorf("a /29 gave %v, want %v", got, want)
		}
		must(t, n.UnassignAddresses(t.Context(), id, got[2:3]))
		if again := assign(t, n, id, 1); again[0] != got[2] {
			t.Errorf("order %d gave %v, want %v", order, again, got[2])
		}
		must(t, a.Check())
	}
}

func TestUnmanagedUseTakesWhatIsLeftAtMost(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	free := func() int { return a.Snapshot().Subnets[0].Free }
	must(t, a.SetUnmanaged("a", 250))
	if got := free(); got != 1 {
		t.Errorf("%d addresses are free, want 1", got)
	}
	must(t, a.SetUnmanaged("a", math.MaxInt))
	if got := free(); got != 0 {
		t.Errorf("%d addresses are free, want 0", got)
	}
	_, err := a.Node("n1").AssignAddresses(t.Context(), "eni-00000001", eni.IPv6, 1)
	wantKind(t, err, cloud.ErrSubnetFull)
	must(t, a.SetUnmanaged("a", -1))
	if got := free(); got != 251 {
		t.Errorf("%d addresses are free, want 251", got)
	}
}

func TestAnInstanceWithoutIPv6HasNone(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	n, err := a.AddNode(NodeSpec{Name: "n3", Limits: eni.Limits{ENIs: 2, V4: 4}, Subnet: "a"})
	must(t, err)
	i := create(t, n, "t", 1)
	if i.V6.IsValid() || !i.V4.IsValid() {
		t.Errorf("the ENI is %+v", i)
	}
	_, err = n.AssignAddresses(t.Context(), i.ID, eni.IPv6, 1)
	wantKind(t, err, cloud.ErrForbidden)
	must(t, a.AddSubnet(Subnet{ID: "c", V6: netip.MustParsePrefix("fd00:12::/64")}))
	_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "t6", Subnet: "c"})
	wantKind(t, err, cloud.ErrForbidden)
}

func TestTheScarcerFamilyEndsASubnet(t *testing.T) {
	a := NewAccount(Options{})
	must(t, a.AddSubnet(Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/24"), V6: netip.MustParsePrefix("fd00::/126")}))
	n, err := a.AddNode(NodeSpec{Name: "n", Limits: eni.Limits{ENIs: 4, V4: 4, V6: 4}, Subnet: "a"})
	must(t, err)
	create(t, n, "t1", 3)
	if got := a.Snapshot().Subnets[0].Free; got != 0 {
		t.Errorf("%d addresses are free, want 0: there is no IPv6 left", got)
	}
	_, err = n.CreateInterface(t.Context(), cloud.Create{Token: "t2", Subnet: "a", V4: 3})
	wantKind(t, err, cloud.ErrSubnetFull)
	must(t, a.Check())
}

func TestAReturnedSliceIsTheCallers(t *testing.T) {
	a := whole(t, newAccount(t, Options{}))
	n := a.Node("n1")
	i := create(t, n, "t", 2)
	clear(i.Addresses)
	list, err := n.Interfaces(t.Context())
	must(t, err)
	clear(list[1].Addresses)
	clear(a.Snapshot().Nodes["n1"][1].Addresses)
	list, err = n.Interfaces(t.Context())
	must(t, err)
	if want := addrs("10.0.0.5", "10.0.0.6"); !slices.Equal(want, list[1].Addresses) {
		t.Errorf("the ENI has %v, want %v", list[1].Addresses, want)
	}
}

// TestManyCallsAtOnceKeepTheAccountWhole is for the race detector, too.
func TestManyCallsAtOnceKeepTheAccountWhole(t *testing.T) {
	a := newAccount(t, Options{Lag: 1})
	a.SetFaults(Chance{Percent: 5, Fault: Fault{Answer: Lost}}, Chance{Percent: 5, Fault: Fault{Partial: true}}, Chance{Percent: 5, Fault: Fault{Later: 1}})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() { randomCalls(t, a, uint64(worker)) })
	}
	for range 50 {
		must(t, a.Check())
	}
	all.Wait()
	must(t, a.Check())
	calls := 0
	for _, n := range a.Calls() {
		calls += n
	}
	if calls != 8*500 {
		t.Errorf("%d calls were counted, want %d", calls, 8*500)
	}
}

// randomCalls makes 500 calls and does not look at what becomes of them.
func randomCalls(t *testing.T, a *Account, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		node := []string{"n1", "n2"}[rng.IntN(2)]
		d, ctx := a.NodeDriver(node), t.Context()
		on := driver.Interface{ID: fmt.Sprintf("eni-%08x", 1+rng.IntN(40))}
		switch rng.IntN(6) {
		case 0:
			_, _ = d.Create(ctx, driver.Create{Token: fmt.Sprint(rng.IntN(50)), Subnet: "a", V4: driver.Count{Singles: rng.IntN(8)}})
		case 1:
			_, _ = d.Assign(ctx, driver.Assign{On: on, Family: eni.IPv4, Count: driver.Count{Singles: rng.IntN(8)}})
		case 2:
			_ = d.Unassign(ctx, driver.Unassign{On: on, Family: eni.IPv4, Addresses: addrs("10.0.0.4", "10.0.0.7", "10.0.0.11")})
		case 3:
			_ = d.Delete(ctx, on.ID, "")
		case 4:
			_, _ = d.Subnets(ctx, driver.SubnetFilter{IDs: []string{"a"}})
		case 5:
			_, _ = d.Interfaces(ctx, driver.Filter{Attached: driver.Self{Instance: node}})
		}
	}
}

func BenchmarkAssignUnassign(b *testing.B) {
	a := newAccount(b, Options{})
	n := a.Node("n1")
	for b.Loop() {
		got, err := n.AssignAddresses(b.Context(), "eni-00000001", eni.IPv4, 4)
		if err != nil {
			b.Fatal(err)
		}
		if err := n.UnassignAddresses(b.Context(), "eni-00000001", got); err != nil {
			b.Fatal(err)
		}
	}
}
