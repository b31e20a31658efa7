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

func newAccount(t *testing.T, s Subject) *account {
	t.Helper()
	a := &account{T: t, Driver: s.Driver, s: s, ctx: t.Context(), traits: s.Driver.Traits()}
	times := &a.traits.Times
	times.Poll, times.Slow = cmp.Or(times.Poll, 500*time.Millisecond), cmp.Or(times.Slow, 3*time.Second)
	times.Wait = cmp.Or(times.Wait, 2*time.Minute)
	var err error
	a.self, err = a.Self(a.ctx)
	a.must(err)
	a.shape, err = a.Shape(a.ctx, a.self)
	a.must(err)
	own := a.look(driver.Filter{Attached: a.self})
	if len(own) != 1 || !own[0].Primary {
		t.Fatalf("the suite needs an instance with its primary ENI alone, not with %+v", own)
	}
	a.primary = own[0]
	a.in = a.subnet(s.Subnets[0])
	if a.in.V4.IsValid() && a.shape.V4 > 1 {
		a.has = append(a.has, eni.IPv4)
	}
	if a.in.V6.IsValid() && a.shape.V6 > 1 && (!a.traits.OneNIC || a.primary.V6.IsValid()) {
		a.has = append(a.has, eni.IPv6)
	}
	if !a.traits.OneNIC && a.shape.ENIs < 3 || len(a.has) == 0 || a.room(a.has[0]) < 4 {
		t.Fatalf("the suite needs an instance with 3 ENIs of 5 addresses, or one of 5, not %+v", a.shape)
	}
	return a
}

// room is how many addresses of the family an ENI may have besides its primary one.
func (a *account) room(f eni.Family) int {
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

// is fails the test unless err is a *driver.Error of one of the kinds.
func (a *account) is(err error, kinds ...error) *driver.Error {
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

// because fails the test unless err is a *driver.Error with one of the reasons.
func (a *account) because(err error, why ...driver.Why) {
	a.Helper()
	if e := a.is(err, cloud.Kinds()...); !slices.Contains(why, e.Why) {
		a.Fatalf("error %v is for reason %d, want one of %d", err, e.Why, why)
	}
}

// settle waits until reads show what is now.
func (a *account) settle() {
	if a.s.Lag > 0 {
		time.Sleep(a.s.Lag)
	}
}

// look returns what Interfaces shows when it has settled, by ID.
func (a *account) look(f driver.Filter) []driver.Interface {
	a.Helper()
	a.settle()
	list, err := a.Interfaces(a.ctx, f)
	a.must(err)
	slices.SortFunc(list, func(x, y driver.Interface) int { return cmp.Compare(x.ID, y.ID) })
	return list
}

// ids are those of what Interfaces shows when it has settled.
func (a *account) ids(f driver.Filter) (ids []string) {
	a.Helper()
	for _, i := range a.look(f) {
		ids = append(ids, i.ID)
	}
	return ids
}

// one returns the ENI as Interfaces shows it, the zero Interface if it does not.
func (a *account) one(id string) driver.Interface {
	a.Helper()
	list := a.look(driver.Filter{IDs: []string{id}})
	switch {
	case len(list) == 0 && id == a.primary.ID: // some clouds show it by its instance alone
		list = slices.DeleteFunc(a.look(driver.Filter{Attached: a.self}), func(i driver.Interface) bool { return !i.Primary })
	case len(list) > 1:
		a.Fatalf("ENI %s is shown as %+v", id, list)
	}
	if len(list) == 0 {
		return driver.Interface{}
	}
	return list[0]
}

// await looks until it holds, as often as the Traits say and as long.
func (a *account) await(what string, holds func() bool) {
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
	a.await("an ENI's state", func() bool { i = a.one(id); return i.ID == id && i.State == s })
	return i
}

// subnet returns the subnet as Subnets shows it when it has settled.
func (a *account) subnet(id string) driver.Subnet {
	a.Helper()
	a.settle()
	list, err := a.Subnets(a.ctx, driver.SubnetFilter{IDs: []string{id}})
	a.must(err)
	if len(list) != 1 || list[0].ID != id || list[0].Wrong != "" {
		a.Fatalf("subnet %s is shown as %+v", id, list)
	}
	return list[0]
}

// mark is one that no ENI has.
func (a *account) mark() driver.Mark {
	a.marks++
	m := driver.Mark{Instance: a.self.Instance, Token: rand.Text(), Asked: time.Now().UTC().Truncate(time.Second), Cluster: cluster}
	if a.traits.NoIndex {
		m.Index = a.marks
	}
	return m
}

// wish is one for an ENI with its primary addresses alone.
func (a *account) wish() driver.Create {
	m := a.mark()
	return driver.Create{Self: a.self, Subnet: a.in.ID, Groups: a.primary.Groups, Mark: m, Tags: map[string]string{"made-by": cluster},
		IPv6: slices.Contains(a.has, eni.IPv6), Named6: true, Token: m.Token}
}

// make makes an ENI and returns it as it is shown when it can be attached.
func (a *account) make(w driver.Create) driver.Interface {
	a.Helper()
	made, err := a.Create(a.ctx, w)
	a.must(err)
	return a.awaitState(made.ID, driver.Loose)
}

// loose makes an ENI that is attached nowhere.
func (a *account) loose() driver.Interface {
	a.Helper()
	return a.make(a.wish())
}

// instance is one of the same type, zone and VPC as the node's own.
func (a *account) instance(id string) driver.Self {
	s := a.self
	s.Instance = id
	return s
}

// place is the lowest device index that is free.
func (a *account) place(id, instance string) driver.Attach {
	a.Helper()
	w := driver.Attach{ID: id, Instance: instance, Token: rand.Text()}
	if a.traits.NoIndex {
		return w
	}
	taken := a.look(driver.Filter{Attached: a.instance(instance)})
	for w.Index = 1; slices.ContainsFunc(taken, func(i driver.Interface) bool { return i.Card == 0 && i.Index == w.Index }); w.Index++ {
	}
	return w
}

// attachTo attaches the ENI and returns it as it is shown then.
func (a *account) attachTo(id, instance string) driver.Interface {
	a.Helper()
	_, err := a.Attach(a.ctx, a.place(id, instance))
	a.must(err)
	return a.awaitState(id, driver.Attached)
}

// ready is an ENI of the instance that takes addresses: the primary one where there is
// no other.
func (a *account) ready() driver.Interface {
	a.Helper()
	if a.traits.OneNIC {
		return a.one(a.primary.ID)
	}
	return a.attachTo(a.loose().ID, a.self.Instance)
}

// put is Assign of so many single addresses, all of which must come.
func (a *account) put(on driver.Interface, f eni.Family, n int) []netip.Addr {
	a.Helper()
	before := a.addresses(on.ID, f)
	_, err := a.Assign(a.ctx, driver.Assign{On: on, Family: f, Count: driver.Count{Singles: n}, Token: rand.Text()})
	a.must(err)
	fresh := without(a.addresses(on.ID, f), before)
	if len(fresh) != n {
		a.Fatalf("Assign of %d %s addresses put %v where there is room", n, f, fresh)
	}
	return fresh
}

// addresses returns the further single addresses of the ENI, as shown.
func (a *account) addresses(id string, f eni.Family) []netip.Addr {
	a.Helper()
	list := slices.DeleteFunc(slices.Clone(a.one(id).Singles), func(x netip.Addr) bool { return eni.FamilyOf(x) != f })
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// without is the difference.
func without[T comparable](list, gone []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return slices.Contains(gone, x) })
}

// all returns every ENI that is of the instance or was made for it, as shown.
func (a *account) all() map[string]driver.Interface {
	a.Helper()
	all := map[string]driver.Interface{}
	for _, f := range []driver.Filter{{Attached: a.self}, {Made: a.self.Instance}} {
		for _, i := range a.look(f) {
			slices.SortFunc(i.Singles, netip.Addr.Compare)
			slices.SortFunc(i.Blocks, func(x, y netip.Prefix) int { return x.Addr().Compare(y.Addr()) })
			slices.Sort(i.Groups)
			all[i.ID] = i
		}
	}
	return all
}

// unchanged fails the test if Interfaces does not show what it showed before.
func (a *account) unchanged(before map[string]driver.Interface) {
	a.Helper()
	if d := diffValues(before, a.all()); d != "" {
		a.Fatalf("ENIs have changed (-before +after):\n%s", d)
	}
}

func diffValues(x, y any) string {
	return gocmp.Diff(x, y, cmpopts.EquateEmpty(), gocmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
		gocmp.Comparer(func(x, y netip.Prefix) bool { return x == y }))
}
