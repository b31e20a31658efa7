package sim

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newAccount makes an account with two subnets and two nodes: n1, whose ENIs may
// lie in both, and n2.
func newAccount(t testing.TB, o Options) *Account {
	t.Helper()
	a := NewAccount(o)
	for _, s := range []Subnet{
		{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/24"), V6: netip.MustParsePrefix("fd00:10::/64")},
		{ID: "b", V4: netip.MustParsePrefix("10.0.1.0/24"), V6: netip.MustParsePrefix("fd00:10:0:1::/64")},
	} {
		if err := a.AddSubnet(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"n1", "n2"} {
		if _, err := a.AddNode(NodeSpec{Name: name, Limits: eni.Limits{ENIs: 4, V4: 8, V6: 8}, Subnet: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// faultOf is what a failure of the contract is here.
var faultOf = map[cloudtest.Failure]Fault{
	cloudtest.Throttled:       {Err: cloud.ErrThrottled},
	cloudtest.Unavailable:     {Err: cloud.ErrUnavailable},
	cloudtest.Forbidden:       {Err: cloud.ErrForbidden},
	cloudtest.LostAfterCreate: {Answer: Lost},
	cloudtest.LostAfterAttach: {Answer: Lost},
	cloudtest.LostAfterEffect: {Answer: Lost},
	cloudtest.Late:            {Answer: Lost, Later: 5 * time.Millisecond},
	cloudtest.Partial:         {Partial: true, Answer: Lost},
}

// step is the half-operation of a method that a failure hits.
func step(method string, f cloudtest.Failure) string {
	steps := map[string]map[cloudtest.Failure]string{
		"Limits": {0: ActShape}, "Interfaces": {0: ActDescribe}, "Subnets": {0: ActSubnets},
		"AssignAddresses": {0: ActAssign}, "UnassignAddresses": {0: ActUnassign},
		"DeleteInterface": {0: ActDetach, cloudtest.LostAfterEffect: ActDelete, cloudtest.Late: ActDelete},
		"CreateInterface": {0: ActCreate, cloudtest.LostAfterAttach: ActAttach, cloudtest.LostAfterEffect: ActModify, cloudtest.Late: ActAttach},
	}
	if action := steps[method][f]; action != "" {
		return action
	}
	return steps[method][0]
}

// subject is node n1 of the account, seen through dial.
func subject(t *testing.T, a *Account, dial func(node string) cloud.Cloud) cloudtest.Subject {
	return cloudtest.Subject{
		Cloud: dial("n1"), Other: dial("n2"), Subnets: []string{"a", "b"}, Lag: a.o.Lag,
		Inject: func(method string, f cloudtest.Failure) { a.FailNext(step(method, f), faultOf[f]) },
		Leave:  func(subnet string, free int) { must(t, leave(a, subnet, free)) },
		Break:  func(subnet string) { must(t, a.Fragment(subnet, true)) },
		Detach: func(id string) { must(t, a.Detach(id)) },
		Move:   func(id string) { must(t, a.Move(id, "n2")) },
		Check:  a.Check,
	}
}

// leave lets others take all of the subnet but so many addresses.
func leave(a *Account, subnet string, free int) error {
	if err := a.SetUnmanaged(subnet, 0); err != nil {
		return err
	}
	all := a.Snapshot().Subnets
	at := slices.IndexFunc(all, func(s cloud.Subnet) bool { return s.ID == subnet })
	return a.SetUnmanaged(subnet, all[at].Free-free)
}

// direct is the cloud of a node in this process, by an engine that waits for little.
func direct(a *Account) func(string) cloud.Cloud {
	return func(name string) cloud.Cloud {
		o := a.NodeOptions(name)
		o.Times = driver.Times{Poll: time.Millisecond, Slow: 5 * time.Millisecond, Usual: time.Millisecond, Settle: 20 * time.Millisecond, Wait: 10 * time.Second}
		return engine.New(a.NodeDriver(name), o)
	}
}

func TestContractWhereThePrimaryENIGetsNone(t *testing.T) {
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		a := newAccount(t, Options{})
		for name, m := range a.nodes.byName {
			m.Limits.NoPrimary = true
			a.nodes.byName[name] = m
		}
		return subject(t, a, direct(a))
	})
}

func dial(t *testing.T, endpoint, node string) driver.Driver {
	t.Helper()
	c, err := Dial(endpoint, node)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve serves the account for as long as the test runs.
func serve(t *testing.T, a *Account) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cloud.sock")
	l, err := Listen(path)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.Serve(ctx, l, a.Handler()) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
	})
	return path
}

func TestContractWithANetwork(t *testing.T) {
	nettest.Need(t)
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		a := newAccount(t, Options{Network: newNetwork(t, "t")})
		s := subject(t, a, direct(a))
		s.Use = func(t *testing.T, ready cloud.Interface) { usable(t, a.Node("n1"), ready) }
		return s
	})
}

// usable tells whether packets of the ENI's addresses pass in the VPC, both ways.
func usable(t *testing.T, n *Node, i cloud.Interface) {
	t.Helper()
	device := fmt.Sprintf("eth%d", i.Index)
	if got := sh(t, n.Namespace(), "ip link show "+device); !strings.Contains(got, i.MAC) {
		t.Errorf("the ENI has MAC %s, its link is\n%s", i.MAC, got)
	}
	secondENI(t, n.Namespace(), eni.Interface{Index: i.Index, Device: device, V4: i.V4, V6: i.V6})
	internet := n.a.o.Network.Internet()
	outside, inside := listen(t, internet), listen(t, n.Namespace())
	for _, a := range i.Addresses {
		dst := InternetV4
		if a.Is6() {
			dst = InternetV6
		}
		addLocal(t, n.Namespace(), a)
		sh(t, n.Namespace(), fmt.Sprintf("ip %s rule add from %s lookup 101", dash(a), a))
		send(t, n.Namespace(), a, dst, outside, a.String())
		if text, from := outside.next(t); text != a.String() || from != a {
			t.Errorf("the internet got %q from %s, want it from %s", text, from, a)
		}
		send(t, internet, dst, a, inside, a.String())
		if text, from := inside.next(t); text != a.String() || from != dst {
			t.Errorf("%s got %q from %s", a, text, from)
		}
	}
}

// plain lets what is compared have addresses.
var plain = []gocmp.Option{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}
