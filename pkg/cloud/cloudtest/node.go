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
	node := &node{T: t, Subject: s, ctx: t.Context()}
	var err error
	if node.limits, err = s.Cloud.Limits(node.ctx); err != nil {
		t.Fatal(err)
	}
	if len(s.Subnets) > 0 && node.spareENIs() > 0 {
		node.first = s.Subnets[0]
	} else {
		node.first = node.primaryENI().Subnet
	}
	here := node.findSubnet(node.first)
	if here.V4Net.IsValid() && node.limits.V4 > 0 {
		node.has = append(node.has, eni.IPv4)
	}
	if here.V6Net.IsValid() && node.limits.V6 > 0 {
		node.has = append(node.has, eni.IPv6)
	}
	if node.spareENIs() == 0 && node.limits.NoPrimary {
		t.Fatalf("no ENI of the instance gets addresses: %+v", node.limits)
	}
	if node.spareENIs() == 0 {
		node.has = node.familiesOf(node.primaryENI()) // nothing else will have any
	}
	if node.limits.ENIs < 1 || len(node.has) == 0 || node.mostInUnits(node.has[0]) < 4*node.unitSize(node.has[0]) {
		t.Fatalf("the suite needs an instance with an ENI of 5 addresses, or of 4 blocks and an address, not with %+v", node.limits)
	}
	return node
}

// firstFamily is the family that a sentence uses if one is enough.
func (n *node) firstFamily() eni.Family { return n.has[0] }

// unitSize is how many addresses of the family come and go together.
func (n *node) unitSize(f eni.Family) int { return max(n.limits.Block(f).Size, 1) }

// mostInUnits is how many addresses of the family an ENI may have in whole units.
func (n *node) mostInUnits(f eni.Family) int {
	return n.limits.PerENI(f) / n.unitSize(f) * n.unitSize(f)
}

// addressesIn is how many addresses count units of the family have, at most as many as an ENI may
// have. If addresses come in blocks, the suite asks for whole blocks.
func (n *node) addressesIn(f eni.Family, count int) int {
	return min(count*n.unitSize(f), n.mostInUnits(f))
}

// splitUnits splits addresses into those that come and go together, in their order.
func (n *node) splitUnits(addrs []netip.Addr) [][]netip.Addr {
	var units [][]netip.Addr
	at := map[netip.Prefix]int{}
	for _, addr := range addrs {
		b := n.limits.Block(eni.FamilyOf(addr))
		if b.Size <= 1 {
			b.Bits = addr.BitLen()
		}
		bits, _ := addr.Prefix(b.Bits)
		i, known := at[bits]
		if !known {
			i = len(units)
			at[bits] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], addr)
	}
	return units
}

// newCreate describes a new ENI with count units of each family.
func (n *node) newCreate(count int) cloud.Create {
	c := cloud.Create{Token: "contract-" + rand.Text(), Subnet: n.first}
	if slices.Contains(n.has, eni.IPv4) {
		c.V4 = n.addressesIn(eni.IPv4, count)
	}
	if slices.Contains(n.has, eni.IPv6) {
		c.V6 = n.addressesIn(eni.IPv6, count)
	}
	return c
}

// createENI makes an ENI with count units of each family.
func (n *node) createENI(count int) cloud.Interface {
	n.Helper()
	i, err := n.Cloud.CreateInterface(n.ctx, n.newCreate(count))
	n.must(err)
	return i
}

// assignUnits puts exactly count units on the ENI.
func (n *node) assignUnits(id string, count int) []netip.Addr {
	n.Helper()
	count = n.addressesIn(n.firstFamily(), count)
	addrs, err := n.Cloud.AssignAddresses(n.ctx, id, n.firstFamily(), count)
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

// waitForLag waits until describes show what is true now.
func (n *node) waitForLag() {
	if n.Lag > 0 {
		time.Sleep(n.Lag)
	}
}

// settledENIs returns what Interfaces shows after the lag.
func (n *node) settledENIs() []cloud.Interface {
	n.Helper()
	n.waitForLag()
	list, err := n.Cloud.Interfaces(n.ctx)
	n.must(err)
	return list
}

// waitUntil waits for a condition, for at most a minute: calls of the same process override describes
// for the consistency window.
func (n *node) waitUntil(otherwise string, is func() bool) {
	n.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatal(otherwise)
		}
	}
}

// findENI returns the ENI as Interfaces shows it; ok is false if it does not.
func (n *node) findENI(id string) (i cloud.Interface, ok bool) {
	n.Helper()
	return findIn(n.settledENIs(), func(i cloud.Interface) bool { return i.ID == id })
}

// byToken is eni for the one that the token has made.
func (n *node) byToken(token string) (i cloud.Interface, ok bool) {
	n.Helper()
	return findIn(n.settledENIs(), func(i cloud.Interface) bool { return i.Token == token })
}

func findIn(list []cloud.Interface, is func(cloud.Interface) bool) (cloud.Interface, bool) {
	if at := slices.IndexFunc(list, is); at >= 0 {
		return list[at], true
	}
	return cloud.Interface{}, false
}

// findSubnet returns the subnet as Subnets shows it after the lag.
func (n *node) findSubnet(id string) cloud.Subnet {
	n.Helper()
	n.waitForLag()
	list, err := n.Cloud.Subnets(n.ctx)
	n.must(err)
	at := slices.IndexFunc(list, func(s cloud.Subnet) bool { return s.ID == id })
	if at < 0 {
		n.Fatalf("Subnets does not show %s: %+v", id, list)
	}
	return list[at]
}

// checkKind fails the test unless err is a *cloud.Error of one of the kinds.
func (n *node) checkKind(err error, kinds ...error) {
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

// checkUnchanged fails the test if Interfaces does not show what it showed before.
func (n *node) checkUnchanged(before []cloud.Interface) {
	n.Helper()
	if diff := diffENIs(before, n.settledENIs()); diff != "" {
		n.Fatalf("interfaces have changed (-before +after):\n%s", diff)
	}
}

// diffENIs compares lists of ENIs; a nil slice is as good as an empty one.
func diffENIs(want, got []cloud.Interface) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }))
}

// union is the sorted union.
func union(addrs []netip.Addr, more ...netip.Addr) []netip.Addr {
	all := append(slices.Clone(addrs), more...)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// withoutAddrs is the difference.
func withoutAddrs(addrs []netip.Addr, gone ...netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return slices.Contains(gone, a) })
}

// checkCarries fails the test unless the ENI has exactly these secondary addresses.
func (n *node) checkCarries(id string, want []netip.Addr) {
	n.Helper()
	i, ok := n.findENI(id)
	if !ok {
		n.Fatalf("ENI %s is gone", id)
	}
	if !slices.Equal(want, i.Addresses) {
		n.Fatalf("ENI %s has addresses %v, want %v", id, i.Addresses, want)
	}
}
