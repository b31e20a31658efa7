package drivertest

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	gocmp "github.com/google/go-cmp/cmp"
)

// reads is what the comments of Traits, Self, Shape, Alive and Subnets say.
var reads = []sentence{
	{"Traits never change", nil, traitsStay},
	{"Self returns the instance that this process runs on", nil, tellsSelf},
	{"Shape returns how many ENIs the instance may carry", []need{severalNICs, needsCapability(Quotas)}, shapeOfENIs},
	{"Shape returns how many addresses an ENI may carry", []need{needsCapability(Quotas)}, shapeOfAddresses},
	{"Shape tells whether pods can use further addresses of the primary ENI", nil, shapeOfPrimary},
	{"Types: Shapes returns what instances of the types may carry, and leaves out those that there are not", []need{tellsTypes}, shapesOfTypes},
	{"without Types Shapes fails with ErrForbidden", []need{tellsNoTypes}, shapesOfNone},
	{"Alive tells no instance Gone that exists", nil, hereIsNotGone},
	{"Alive tells which instances surely exist no longer", []need{canEnd}, goneIsGone},
	{"Alive tells an instance that was stopped from one that runs", []need{canStop}, stoppedIsStopped},
	{"Subnets returns the subnets with one of the IDs", nil, subnetsByID},
	{"Subnets returns those of the VPC that have all of the tags", []need{hasTags}, subnetsByTags},
	{"Subnets returns the subnets with one of the IDs and those with the tags", []need{hasTags}, subnetsByBoth},
	{"Subnets returns none for a filter without IDs and tags", nil, subnetsByNothing},
	{"a Subnet has the fields that its comments promise", nil, fieldsOfSubnet},
	{"Free of a subnet is how many IPv4 addresses are left", nil, freeIsLeft},
}

func traitsStay(a *account) {
	before := a.Traits()
	a.ready()
	after := a.Traits()
	before.Zone, after.Zone = nil, nil // functions don't compare
	if d := diffValues(before, after); d != "" {
		a.Errorf("Traits have changed:\n%s", d)
	}
}

func tellsSelf(a *account) {
	again, err := a.Self(a.ctx)
	a.must(err)
	if again != a.self || a.self.Instance == "" || a.self.Instance == a.s.Other {
		a.Errorf("Self is %+v, and then %+v", a.self, again)
	}
	if a.primary.Instance != a.self.Instance {
		a.Errorf("the primary ENI of instance %s is of %q", a.self.Instance, a.primary.Instance)
	}
}

// shapeOfENIs fills the instance on all of its network cards.
func shapeOfENIs(a *account) {
	cards := a.shape.Cards
	if len(cards) == 0 {
		cards = []int{a.shape.ENIs}
	}
	for card, enis := range cards {
		for index := range enis {
			if card == 0 && index == 0 {
				continue // the primary ENI is there
			}
			_, err := a.Attach(a.ctx, driver.Attach{ID: a.loose().ID, Instance: a.self.Instance, Index: index, Card: card, Token: a.mark().Token})
			a.must(err)
		}
	}
	a.await("as many ENIs as the instance may carry are attached", func() bool {
		return len(a.look(driver.Filter{Attached: a.self})) == sum(cards)
	})
	one := a.loose()
	before := a.all()
	_, err := a.Attach(a.ctx, driver.Attach{ID: one.ID, Instance: a.self.Instance, Index: cards[0], Token: a.mark().Token})
	a.is(err, cloud.ErrLimit)
	a.unchanged(before)
}

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}

func shapeOfAddresses(a *account) {
	on := a.ready()
	for _, f := range a.has {
		most := a.room(f) - len(a.addresses(on.ID, f))
		if f == eni.IPv6 && !on.V6.IsValid() {
			most++ // the primary one is among those
		}
		for left := most; left > 0; {
			n := left
			if a.traits.PerCall > 0 {
				n = min(n, a.traits.PerCall)
			}
			a.put(on, f, n)
			left -= n
		}
		before := a.all()
		_, err := a.Assign(a.ctx, driver.Assign{On: on, Family: f, Count: driver.Count{Singles: 1}, Token: a.mark().Token})
		a.is(err, cloud.ErrLimit)
		a.unchanged(before)
	}
}

func shapeOfPrimary(a *account) {
	f := a.has[0]
	_, err := a.Assign(a.ctx, driver.Assign{On: a.primary, Family: f, Count: driver.Count{Singles: 1}, Token: a.mark().Token})
	if a.shape.NoPrimary {
		a.is(err, cloud.ErrLimit, cloud.ErrForbidden, cloud.ErrNotFound)
		return
	}
	a.must(err)
	if got := a.addresses(a.primary.ID, f); len(got) == 0 {
		a.Errorf("the primary ENI got no address")
	}
}

func tellsTypes(_ Subject, t driver.Traits) string {
	return unless(t.Types, "the limits of instances are told, not of types")
}

func tellsNoTypes(_ Subject, t driver.Traits) string {
	return unless(!t.Types, "the limits of types are told")
}

func shapesOfTypes(a *account) {
	shapes, err := a.Shapes(a.ctx, []string{a.shape.Type, "a9.nothing", "?*"})
	a.must(err)
	want := a.shape
	want.NoPrimary, want.PrimaryAlone = false, false // that is the instance's
	if diff := gocmp.Diff(map[string]driver.Shape{a.shape.Type: want}, shapes); diff != "" {
		a.Errorf("the shapes of types differ from the instance's (-instance +types):\n%s", diff)
	}
}

func shapesOfNone(a *account) {
	_, err := a.Shapes(a.ctx, []string{"any"})
	a.is(err, cloud.ErrForbidden)
}

// states are what Alive tells of instances.
func (a *account) states(instances ...string) map[string]cloud.State {
	a.Helper()
	states, err := a.Alive(a.ctx, instances)
	a.must(err)
	if len(states) != len(instances) {
		a.Errorf("of %v Alive tells %v", instances, states)
	}
	return states
}

func hereIsNotGone(a *account) {
	here := []string{a.self.Instance}
	if a.s.Other != "" {
		here = append(here, a.s.Other)
	}
	for id, is := range a.states(here...) {
		if is != cloud.Running && is != cloud.Exists {
			a.Errorf("instance %s, which exists, is %s", id, is)
		}
	}
}

func goneIsGone(a *account) {
	a.s.Terminate(a.s.Other)
	a.await("an instance that was ended is gone", func() bool {
		states := a.states(a.self.Instance, a.s.Other)
		if states[a.self.Instance] == cloud.Gone {
			a.Fatalf("instance %s is gone", a.self.Instance)
		}
		return states[a.s.Other] == cloud.Gone
	})
}

func stoppedIsStopped(a *account) {
	a.s.Stop(a.s.Other, true)
	a.await("an instance that was stopped is", func() bool { return a.states(a.self.Instance, a.s.Other)[a.s.Other] == cloud.Stopped })
	a.s.Stop(a.s.Other, false)
	a.await("an instance that was started again runs", func() bool { return a.states(a.s.Other)[a.s.Other] == cloud.Running })
}

// subnetIDs are those of what Subnets shows, sorted.
func (a *account) subnetIDs(f driver.SubnetFilter) []string {
	a.Helper()
	list, err := a.Subnets(a.ctx, f)
	a.must(err)
	ids := map[string]bool{}
	for _, s := range list {
		ids[s.ID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

func (a *account) selects(f driver.SubnetFilter, want ...string) {
	a.Helper()
	slices.Sort(want)
	if got := a.subnetIDs(f); !slices.Equal(got, want) {
		a.Errorf("the filter %+v selects %v, want %v", f, got, want)
	}
}

func subnetsByID(a *account) {
	a.selects(driver.SubnetFilter{IDs: a.s.Subnets}, slices.Clone(a.s.Subnets)...)
	a.selects(driver.SubnetFilter{IDs: a.s.Subnets[:1]}, a.s.Subnets[0])
	a.selects(driver.SubnetFilter{IDs: []string{a.nobody("subnet")}})
	a.selects(driver.SubnetFilter{IDs: []string{a.nobody("subnet"), a.s.Subnets[0]}}, a.s.Subnets[0])
}

func subnetsByTags(a *account) {
	a.selects(driver.SubnetFilter{VPC: a.in.VPC, Tags: a.s.Tags}, a.s.Subnets[0])
	more := maps.Clone(a.s.Tags)
	more["no-subnet-has"] = "this"
	a.selects(driver.SubnetFilter{VPC: a.in.VPC, Tags: more})
	for key := range a.s.Tags {
		a.selects(driver.SubnetFilter{VPC: a.in.VPC, Tags: map[string]string{key: "another-value"}})
	}
	list, err := a.Subnets(a.ctx, driver.SubnetFilter{VPC: a.in.VPC, Tags: a.s.Tags})
	a.must(err)
	for key, value := range a.s.Tags {
		if list[0].Tags[key] != value {
			a.Errorf("the subnet with tags %v is shown with %v", a.s.Tags, list[0].Tags)
		}
	}
}

func subnetsByBoth(a *account) {
	a.selects(driver.SubnetFilter{IDs: a.s.Subnets[1:2], VPC: a.in.VPC, Tags: a.s.Tags}, a.s.Subnets[0], a.s.Subnets[1])
}

func subnetsByNothing(a *account) {
	a.selects(driver.SubnetFilter{})
	a.selects(driver.SubnetFilter{VPC: a.in.VPC})
}

func fieldsOfSubnet(a *account) {
	for _, id := range a.s.Subnets {
		s := a.subnet(id)
		switch {
		case !s.V4.IsValid() && !s.V6.IsValid() || s.V4 != s.V4.Masked() || s.V6 != s.V6.Masked():
			a.Errorf("subnet %s has ranges %s and %s", id, s.V4, s.V6)
		case s.V4.IsValid() && (!s.V4.Addr().Is4() || !s.V4.Contains(s.Gateway4)):
			a.Errorf("subnet %s of range %s has gateway %s", id, s.V4, s.Gateway4)
		case s.V6.IsValid() && (!s.V6.Addr().Is6() || !s.V6.Contains(s.Gateway6) && !s.Gateway6.IsLinkLocalUnicast()):
			a.Errorf("subnet %s of range %s has gateway %s", id, s.V6, s.Gateway6)
		case !s.Ready || a.primary.VPC != "" && s.VPC != "" && s.VPC != a.primary.VPC:
			a.Errorf("subnet %s is ready: %v, of VPC %q", id, s.Ready, s.VPC)
		}
	}
}

func freeIsLeft(a *account) {
	before := a.in.Free
	if before < 0 {
		a.Skip("the cloud does not count")
	}
	if a.has[0] != eni.IPv4 {
		a.Skip("ENIs have no IPv4 addresses")
	}
	used := 0
	if !a.traits.OneNIC {
		used = 1
	}
	on := a.ready()
	a.freeIs(before - used)
	some := a.put(on, eni.IPv4, 3)
	a.freeIs(before - used - 3)
	a.must(a.Unassign(a.ctx, driver.Unassign{On: on, Family: eni.IPv4, Addresses: some[:2], Token: a.mark().Token}))
	a.freeIs(before - used - 1)
}

func (a *account) freeIs(want int) {
	a.Helper()
	a.await("Free counts what is left", func() bool { return a.subnet(a.in.ID).Free == want })
}

// nobody is an ID that nothing has, in the cloud's own form where that has digits: some
// clouds check it.
func (a *account) nobody(kind string) string {
	known := map[string]string{"subnet": a.in.ID, "eni": a.primary.ID, "i": a.self.Instance}[kind]
	if id := digits.ReplaceAllStringFunc(known, func(id string) string { return strings.Repeat("0", len(id)) }); id != known {
		return id
	}
	return kind + "-of-nobody"
}

var (
	digits    = regexp.MustCompile(`[0-9a-f]{6,}$`)
	macFormat = regexp.MustCompile(`^([0-9a-fA-F]{2}[:-]?){5}[0-9a-fA-F]{2}$`)
)

// fieldsOf fails the test unless the ENI has the fields that Interface's comments promise.
func (a *account) fieldsOf(i driver.Interface) {
	a.Helper()
	switch {
	case i.ID == "" || !macFormat.MatchString(i.MAC) || i.Subnet == "" || i.Wrong != "" || i.Unmanaged != "":
		a.Errorf("an ENI is shown as %+v", i)
	case !i.V4.IsValid() && !i.V6.IsValid() && len(i.Singles) == 0:
		a.Errorf("ENI %s has no address", i.ID)
	case i.V4.IsValid() && !i.V4.Is4() || i.V6.IsValid() && !i.V6.Is6():
		a.Errorf("ENI %s has primary addresses %s and %s", i.ID, i.V4, i.V6)
	case slices.ContainsFunc(i.Singles, func(x netip.Addr) bool { return x == i.V4 || x == i.V6 || !x.IsValid() }):
		a.Errorf("ENI %s has primary addresses %s and %s, and further ones %v", i.ID, i.V4, i.V6, i.Singles)
	case (i.State == driver.Attached) != (i.Instance != "") && i.State != driver.Attaching && i.State != driver.Detaching:
		a.Errorf("ENI %s is in state %d at instance %q", i.ID, i.State, i.Instance)
	case i.Created.After(time.Now().Add(time.Hour)):
		a.Errorf("ENI %s was made at %s", i.ID, i.Created)
	}
}
