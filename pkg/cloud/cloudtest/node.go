package cloudtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// node is the subject in one subtest.
type node struct {
	*testing.T
	Subject
	ctx    context.Context
	limits eni.Limits
	first  string       // the subnet to use
	has    []eni.Family // those that ENIs in it have
}

func newNode(t *testing.T, s Subject) *node {
	t.Helper()
	n := &node{T: t, Subject: s, ctx: t.Context()}
	var err error
	if n.limits, err = s.Cloud.Limits(n.ctx); err != nil {
		t.Fatal(err)
	}
	if len(s.Subnets) > 0 && n.spare() > 0 {
		n.first = s.Subnets[0]
	} else {
		n.first = n.own().Subnet
	}
	here := n.subnet(n.first)
	if here.V4Net.IsValid() && n.limits.V4 > 0 {
		n.has = append(n.has, eni.IPv4)
	}
	if here.V6Net.IsValid() && n.limits.V6 > 0 {
		n.has = append(n.has, eni.IPv6)
	}
	if n.spare() == 0 && n.limits.NoPrimary {
		t.Fatalf("no ENI of the instance gets addresses: %+v", n.limits)
	}
	if n.spare() == 0 {
		n.has = n.families(n.own()) // nothing else will have any
	}
	if n.limits.ENIs < 1 || len(n.has) == 0 || n.most(n.has[0]) < 4*n.unit(n.has[0]) {
		t.Fatalf("the suite needs an instance with an ENI of 5 addresses, or of 4 blocks and an address, not with %+v", n.limits)
	}
	return n
}

// family is the one that tests use where one is enough.
func (n *node) family() eni.Family { return n.has[0] }

// unit is how many addresses of the family come and go together.
func (n *node) unit(f eni.Family) int { return max(n.limits.Block(f).Size, 1) }

// most is how many addresses of the family an ENI may have in whole units.
func (n *node) most(f eni.Family) int { return n.limits.PerENI(f) / n.unit(f) * n.unit(f) }

// some is how many addresses count units of the family are, or as many as an ENI may
// have: where addresses come in blocks the suite asks for whole ones.
func (n *node) some(f eni.Family, count int) int { return min(count*n.unit(f), n.most(f)) }

// units parts addresses into those that come and go together, in their order.
func (n *node) units(addrs []netip.Addr) [][]netip.Addr {
	var units [][]netip.Addr
	at := map[netip.Prefix]int{}
	for _, a := range addrs {
		b := n.limits.Block(eni.FamilyOf(a))
		if b.Size <= 1 {
			b.Bits = a.BitLen()
		}
		bits, _ := a.Prefix(b.Bits)
		i, known := at[bits]
		if !known {
			i = len(units)
			at[bits] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], a)
	}
	return units
}

// want is a wish for an ENI with count units of each family.
func (n *node) want(count int) cloud.Create {
	c := cloud.Create{Token: "contract-" + rand.Text(), Subnet: n.first}
	if slices.Contains(n.has, eni.IPv4) {
		c.V4 = n.some(eni.IPv4, count)
	}
	if slices.Contains(n.has, eni.IPv6) {
		c.V6 = n.some(eni.IPv6, count)
	}
	return c
}

// create makes an ENI with count units of each family.
func (n *node) create(count int) cloud.Interface {
	n.Helper()
	i, err := n.Cloud.CreateInterface(n.ctx, n.want(count))
	n.must(err)
	return i
}

// assign puts exactly count units on the ENI.
func (n *node) assign(id string, count int) []netip.Addr {
	n.Helper()
	count = n.some(n.family(), count)
	addrs, err := n.Cloud.AssignAddresses(n.ctx, id, n.family(), count)
	n.must(err)
	if len(addrs) != count {
		n.Fatalf("AssignAddresses(%d) returned %v where there is room", count, addrs)
	}
	return addrs
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// settle waits until describes show what is now.
func (n *node) settle() {
	if n.Lag > 0 {
		time.Sleep(n.Lag)
	}
}

// see returns what Interfaces shows when it has settled.
func (n *node) see() []cloud.Interface {
	n.Helper()
	n.settle()
	list, err := n.Cloud.Interfaces(n.ctx)
	n.must(err)
	return list
}

// until waits until something is so, for at most a minute: describes are not believed at once
// against the calls of the same process.
func (n *node) until(otherwise string, is func() bool) {
	n.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatal(otherwise)
		}
	}
}

// eni returns the ENI as Interfaces shows it; ok is false if it does not.
func (n *node) eni(id string) (i cloud.Interface, ok bool) {
	n.Helper()
	return find(n.see(), func(i cloud.Interface) bool { return i.ID == id })
}

// byToken is eni for the one that the token has made.
func (n *node) byToken(token string) (i cloud.Interface, ok bool) {
	n.Helper()
	return find(n.see(), func(i cloud.Interface) bool { return i.Token == token })
}

func find(list []cloud.Interface, is func(cloud.Interface) bool) (cloud.Interface, bool) {
	if at := slices.IndexFunc(list, is); at >= 0 {
		return list[at], true
	}
	return cloud.Interface{}, false
}

// subnet returns the subnet as Subnets shows it when it has settled.
func (n *node) subnet(id string) cloud.Subnet {
	n.Helper()
	n.settle()
	list, err := n.Cloud.Subnets(n.ctx)
	n.must(err)
	at := slices.IndexFunc(list, func(s cloud.Subnet) bool { return s.ID == id })
	if at < 0 {
		n.Fatalf("Subnets does not show %s: %+v", id, list)
	}
	return list[at]
}

// is fails the test unless err is a *cloud.Error of one of the kinds.
func (n *node) is(err error, kinds ...error) {
	n.Helper()
	var e *cloud.Error
	switch {
	case err == nil:
		n.Fatalf("no error, want one of %v", kinds)
	case !errors.As(err, &e):
		n.Fatalf("error %T %v, want a *cloud.Error", err, err)
	case e.Op == "" || !slices.Contains(kinds, e.Kind):
		n.Fatalf("error %v of %q, want one of %v", err, e.Op, kinds)
	}
}

// unchanged fails the test if Interfaces does not show what it showed before.
func (n *node) unchanged(before []cloud.Interface) {
	n.Helper()
	if diff := diffENIs(before, n.see()); diff != "" {
		n.Fatalf("interfaces have changed (-before +after):\n%s", diff)
	}
}

// diffENIs compares lists of ENIs; a nil slice is as good as an empty one.
func diffENIs(want, got []cloud.Interface) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
}

// with is the sorted union.
func with(addrs []netip.Addr, more ...netip.Addr) []netip.Addr {
	all := append(slices.Clone(addrs), more...)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// withoutAddrs is the difference.
func withoutAddrs(addrs []netip.Addr, gone ...netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return slices.Contains(gone, a) })
}

// carries fails the test unless the ENI has exactly these secondary addresses.
func (n *node) carries(id string, want []netip.Addr) {
	n.Helper()
	i, ok := n.eni(id)
	if !ok {
		n.Fatalf("ENI %s is gone", id)
	}
	if !slices.Equal(want, i.Addresses) {
		n.Fatalf("ENI %s has addresses %v, want %v", id, i.Addresses, want)
	}
}
