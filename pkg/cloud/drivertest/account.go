package drivertest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// cluster is that of the marks that the suite writes.
const cluster = "drivertest"

// account is the subject in one subtest.
type account struct {
	*testing.T
	driver.Driver
	s       Subject
	ctx     context.Context
	traits  driver.Traits
	self    driver.Self
	shape   driver.Shape
	in      driver.Subnet // the one to use
	has     []eni.Family  // those that ENIs in it have
	primary driver.Interface
	marks   int
}

func newAccount(t *testing.T, subject Subject) *account {
	t.Helper()
	account := &account{T: t, Driver: subject.Driver, s: subject, ctx: t.Context(), traits: subject.Driver.Traits()}
	times := &account.traits.Times
	times.Poll, times.Slow = cmp.Or(times.Poll, 500*time.Millisecond), cmp.Or(times.Slow, 3*time.Second)
	times.Wait = cmp.Or(times.Wait, 2*time.Minute)
	var err error
	account.self, err = account.Self(account.ctx)
	account.must(err)
	account.shape, err = account.Shape(account.ctx, account.self)
	account.must(err)
	// What an earlier run has left behind would be counted by every sentence.
	own := account.settledENIs(driver.Filter{Attached: account.self})
	if len(own) != 1 || !own[0].Primary {
		t.Fatalf("the suite needs an instance with its primary ENI alone, not with %+v", own)
	}
	account.primary = own[0]
	account.in = account.settledSubnet(subject.Subnets[0])
	if account.in.V4.IsValid() && account.shape.V4 > 1 {
		account.has = append(account.has, eni.IPv4)
	}
	if account.in.V6.IsValid() && account.shape.V6 > 1 && (!account.traits.OneNIC || account.primary.V6.IsValid()) {
		account.has = append(account.has, eni.IPv6)
	}
	if !account.traits.OneNIC && account.shape.ENIs < 3 || len(account.has) == 0 || account.spareAddresses(account.has[0]) < 4 {
		t.Fatalf("the suite needs an instance with 3 ENIs of 5 addresses, or one of 5, not %+v", account.shape)
	}
	return account
}

// spareAddresses is how many addresses of the family an ENI may have besides its primary one.
func (a *account) spareAddresses(f eni.Family) int {
	if f == eni.IPv4 {
		return a.shape.V4 - 1
	}
	return a.shape.V6 - 1
}

func (a *account) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// checkKind fails the test unless err is a *driver.Error of one of the kinds.
func (a *account) checkKind(err error, kinds ...error) *driver.Error {
	a.Helper()
	var e *driver.Error
	switch {
	case err == nil:
		a.Fatalf("no error, want one of %v", kinds)
	case !errors.As(err, &e):
		a.Fatalf("error %T %v, want a *driver.Error", err, err)
	case !slices.Contains(kinds, e.Kind):
		a.Fatalf("error %v, want one of %v", err, kinds)
	}
	return e
}

// checkReason fails the test unless err is a *driver.Error with one of the reasons.
func (a *account) checkReason(err error, why ...cloud.Why) {
	a.Helper()
	if e := a.checkKind(err, cloud.NodeKinds()...); !slices.Contains(why, e.Why) {
		a.Fatalf("error %v is for reason %d, want one of %d", err, e.Why, why)
	}
}

// waitForLag waits until reads show what is true now.
func (a *account) waitForLag() {
	if a.s.Lag > 0 {
		time.Sleep(a.s.Lag)
	}
}

// settledENIs returns what Interfaces shows after the lag, in the order of IDs.
func (a *account) settledENIs(f driver.Filter) []driver.Interface {
	a.Helper()
	a.waitForLag()
	list, err := a.Interfaces(a.ctx, f)
	a.must(err)
	slices.SortFunc(list, func(x, y driver.Interface) int { return cmp.Compare(x.ID, y.ID) })
	return list
}

// settledIDs returns the IDs of what Interfaces shows after the lag.
func (a *account) settledIDs(f driver.Filter) (ids []string) {
	a.Helper()
	for _, i := range a.settledENIs(f) {
		ids = append(ids, i.ID)
	}
	return ids
}

// settledENI returns the ENI as Interfaces shows it after the lag, the zero Interface if it does not.
func (a *account) settledENI(id string) driver.Interface {
	a.Helper()
	list := a.settledENIs(driver.Filter{IDs: []string{id}})
	switch {
	case len(list) == 0 && id == a.primary.ID: // some clouds show it only by its instance
		list = slices.DeleteFunc(a.settledENIs(driver.Filter{Attached: a.self}), func(i driver.Interface) bool { return !i.Primary })
	case len(list) > 1:
		a.Fatalf("ENI %s is shown as %+v", id, list)
	}
	if len(list) == 0 {
		return driver.Interface{}
	}
	return list[0]
}

// waitUntil waits until a condition holds, as long as the Traits say and as often.
func (a *account) waitUntil(what string, holds func() bool) {
	a.Helper()
	pause := a.traits.Times.Poll
	for until := time.Now().Add(a.traits.Times.Wait); !holds(); pause = min(pause*3/2, a.traits.Times.Slow) {
		if time.Now().After(until) {
			a.Fatalf("after %s it does not hold: %s", a.traits.Times.Wait, what)
		}
		time.Sleep(pause)
	}
}

// awaitState waits until the ENI is shown in the state and returns it.
func (a *account) awaitState(id string, s driver.State) (i driver.Interface) {
	a.Helper()
	a.waitUntil("an ENI's state", func() bool { i = a.settledENI(id); return i.ID == id && i.State == s })
	return i
}

// settledSubnet returns the subnet as Subnets shows it after the lag.
func (a *account) settledSubnet(id string) driver.Subnet {
	a.Helper()
	a.waitForLag()
	list, err := a.Subnets(a.ctx, driver.SubnetFilter{IDs: []string{id}})
	a.must(err)
	if len(list) != 1 || list[0].ID != id || list[0].Wrong != "" {
		a.Fatalf("subnet %s is shown as %+v", id, list)
	}
	return list[0]
}

// newMark returns a mark that no ENI has.
func (a *account) newMark() driver.Mark {
	a.marks++
	m := driver.Mark{Instance: a.self.Instance, Token: rand.Text(), Asked: time.Now().UTC().Truncate(time.Second), Cluster: cluster}
	if a.traits.NoIndex {
		m.Index = a.marks
	}
	return m
}

// newCreate describes a new ENI with only its primary addresses.
func (a *account) newCreate() driver.Create {
	m := a.newMark()
	return driver.Create{Self: a.self, Subnet: a.in.ID, Groups: a.primary.Groups, Mark: m, Tags: map[string]string{"made-by": cluster},
		IPv6: slices.Contains(a.has, eni.IPv6), Named6: true, Token: m.Token}
}

// createLoose makes an ENI and returns it as it is shown when it can be attached.
func (a *account) createLoose(w driver.Create) driver.Interface {
	a.Helper()
	made, err := a.Create(a.ctx, w)
	a.must(err)
	return a.awaitState(made.ID, driver.Loose)
}

// looseENI makes an ENI that is attached nowhere.
func (a *account) looseENI() driver.Interface {
	a.Helper()
	return a.createLoose(a.newCreate())
}

// instanceLike returns an instance of the same type, zone and VPC as the node's own.
func (a *account) instanceLike(id string) driver.Self {
	s := a.self
	s.Instance = id
	return s
}

// freePlace says to attach the ENI at the lowest free device index.
func (a *account) freePlace(id, instance string) driver.Attach {
	a.Helper()
	w := driver.Attach{ID: id, Instance: instance, Token: rand.Text()}
	if a.traits.NoIndex {
		return w
	}
	taken := a.settledENIs(driver.Filter{Attached: a.instanceLike(instance)})
	for w.Index = 1; slices.ContainsFunc(taken, func(i driver.Interface) bool { return i.Card == 0 && i.Index == w.Index }); w.Index++ {
	}
	return w
}

// attachTo attaches the ENI and returns it as it is shown then.
func (a *account) attachTo(id, instance string) driver.Interface {
	a.Helper()
	_, err := a.Attach(a.ctx, a.freePlace(id, instance))
	a.must(err)
	return a.awaitState(id, driver.Attached)
}

// readyENI returns an ENI of the instance that takes addresses: a new one or, if the instance has
// only its primary one, that.
func (a *account) readyENI() driver.Interface {
	a.Helper()
	if a.traits.OneNIC {
		return a.settledENI(a.primary.ID)
	}
	return a.attachTo(a.looseENI().ID, a.self.Instance)
}

// assignSingles is Assign of n single addresses, all of which must come.
func (a *account) assignSingles(on driver.Interface, f eni.Family, n int) []netip.Addr {
	a.Helper()
	before := a.singlesOf(on.ID, f)
	_, err := a.Assign(a.ctx, driver.Assign{On: on, Family: f, Count: driver.Count{Singles: n}, Token: rand.Text()})
	a.must(err)
	fresh := without(a.singlesOf(on.ID, f), before)
	if len(fresh) != n {
		a.Fatalf("Assign of %d %s addresses put %v where there is room", n, f, fresh)
	}
	return fresh
}

// singlesOf returns the single addresses of the ENI besides its primary ones, as shown.
func (a *account) singlesOf(id string, f eni.Family) []netip.Addr {
	a.Helper()
	list := slices.DeleteFunc(slices.Clone(a.settledENI(id).Singles), func(x netip.Addr) bool { return eni.FamilyOf(x) != f })
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// without is the difference.
func without[T comparable](list, gone []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return slices.Contains(gone, x) })
}

// allENIs returns every ENI that is attached to the instance or was made for it, as shown.
func (a *account) allENIs() map[string]driver.Interface {
	a.Helper()
	all := map[string]driver.Interface{}
	for _, f := range []driver.Filter{{Attached: a.self}, {Made: a.self.Instance}} {
		for _, i := range a.settledENIs(f) {
			slices.SortFunc(i.Singles, netip.Addr.Compare)
			slices.SortFunc(i.Blocks, func(x, y netip.Prefix) int { return x.Addr().Compare(y.Addr()) })
			slices.Sort(i.Groups)
			all[i.ID] = i
		}
	}
	return all
}

// checkUnchanged fails the test if Interfaces does not show what it showed before.
func (a *account) checkUnchanged(before map[string]driver.Interface) {
	a.Helper()
	if d := diffValues(before, a.allENIs()); d != "" {
		a.Fatalf("ENIs have changed (-before +after):\n%s", d)
	}
}

func diffValues(x, y any) string {
	return gocmp.Diff(x, y, cmpopts.EquateEmpty(), gocmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
		gocmp.Comparer(func(x, y netip.Prefix) bool { return x == y }))
}
