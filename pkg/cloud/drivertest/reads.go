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

func traitsStay(account *account) {
	before := account.Traits()
	account.readyENI()
	after := account.Traits()
	before.Zone, after.Zone = nil, nil // functions don't compare
	if d := diffValues(before, after); d != "" {
		account.Errorf("Traits have changed:\n%s", d)
	}
}

func tellsSelf(account *account) {
	again, err := account.Self(account.ctx)
	account.must(err)
	if again != account.self || account.self.Instance == "" || account.self.Instance == account.s.Other {
		account.Errorf("Self is %+v, and then %+v", account.self, again)
	}
	if account.primary.Instance != account.self.Instance {
		account.Errorf("the primary ENI of instance %s is of %q", account.self.Instance, account.primary.Instance)
	}
}

// shapeOfENIs fills the instance on all of its network cards.
func shapeOfENIs(account *account) {
	cards := account.shape.Cards
	if len(cards) == 0 {
		cards = []int{account.shape.ENIs}
	}
	for card, enis := range cards {
		for index := range enis {
			if card == 0 && index == 0 {
				continue // the primary ENI is there
			}
			_, err := account.Attach(account.ctx, driver.Attach{ID: account.looseENI().ID, Instance: account.self.Instance, Index: index, Card: card, Token: account.newMark().Token})
			account.must(err)
		}
	}
	account.waitUntil("as many ENIs as the instance may carry are attached", func() bool {
		return len(account.settledENIs(driver.Filter{Attached: account.self})) == sum(cards)
	})
	one := account.looseENI()
	before := account.allENIs()
	_, err := account.Attach(account.ctx, driver.Attach{ID: one.ID, Instance: account.self.Instance, Index: cards[0], Token: account.newMark().Token})
	account.checkKind(err, cloud.ErrLimit)
	account.checkUnchanged(before)
}

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}

func shapeOfAddresses(account *account) {
	on := account.readyENI()
	for _, family := range account.has {
		most := account.spareAddresses(family) - len(account.singlesOf(on.ID, family))
		if family == eni.IPv6 && !on.V6.IsValid() {
			most++ // the primary one is among those
		}
		for left := most; left > 0; {
			n := left
			if account.traits.PerCall > 0 {
				n = min(n, account.traits.PerCall)
			}
			account.assignSingles(on, family, n)
			left -= n
		}
		before := account.allENIs()
		_, err := account.Assign(account.ctx, driver.Assign{On: on, Family: family, Count: driver.Count{Singles: 1}, Token: account.newMark().Token})
		account.checkKind(err, cloud.ErrLimit)
		account.checkUnchanged(before)
	}
}

func shapeOfPrimary(account *account) {
	f := account.has[0]
	_, err := account.Assign(account.ctx, driver.Assign{On: account.primary, Family: f, Count: driver.Count{Singles: 1}, Token: account.newMark().Token})
	if account.shape.NoPrimary {
		account.checkKind(err, cloud.ErrLimit, cloud.ErrForbidden, cloud.ErrNotFound)
		return
	}
	account.must(err)
	if got := account.singlesOf(account.primary.ID, f); len(got) == 0 {
		account.Errorf("the primary ENI got no address")
	}
}

func tellsTypes(_ Subject, t driver.Traits) string {
	return reasonUnless(t.Types, "the limits of instances are told, not of types")
}

func tellsNoTypes(_ Subject, t driver.Traits) string {
	return reasonUnless(!t.Types, "the limits of types are told")
}

func shapesOfTypes(account *account) {
	shapes, err := account.Shapes(account.ctx, []string{account.shape.Type, "a9.nothing", "?*"})
	account.must(err)
	want := account.shape
	want.NoPrimary, want.PrimaryAlone = false, false // that is the instance's
	if diff := gocmp.Diff(map[string]driver.Shape{account.shape.Type: want}, shapes); diff != "" {
		account.Errorf("the shapes of types differ from the instance's (-instance +types):\n%s", diff)
	}
}

func shapesOfNone(account *account) {
	_, err := account.Shapes(account.ctx, []string{"any"})
	account.checkKind(err, cloud.ErrForbidden)
}

// statesOf returns what Alive tells about instances. It must tell about all of them.
func (a *account) statesOf(instances ...string) map[string]cloud.State {
	a.Helper()
	states, err := a.Alive(a.ctx, instances)
	a.must(err)
	if len(states) != len(instances) {
		a.Errorf("of %v Alive tells %v", instances, states)
	}
	return states
}

func hereIsNotGone(account *account) {
	here := []string{account.self.Instance}
	if account.s.Other != "" {
		here = append(here, account.s.Other)
	}
	for id, is := range account.statesOf(here...) {
		if is != cloud.Running && is != cloud.Exists {
			account.Errorf("instance %s, which exists, is %s", id, is)
		}
	}
}

func goneIsGone(account *account) {
	account.s.Terminate(account.s.Other)
	account.waitUntil("an instance that was ended is gone", func() bool {
		states := account.statesOf(account.self.Instance, account.s.Other)
		if states[account.self.Instance] == cloud.Gone {
			account.Fatalf("instance %s is gone", account.self.Instance)
		}
		return states[account.s.Other] == cloud.Gone
	})
}

func stoppedIsStopped(account *account) {
	account.s.Stop(account.s.Other, true)
	account.waitUntil("an instance that was stopped is", func() bool {
		return account.statesOf(account.self.Instance, account.s.Other)[account.s.Other] == cloud.Stopped
	})
	account.s.Stop(account.s.Other, false)
	account.waitUntil("an instance that was started again runs", func() bool { return account.statesOf(account.s.Other)[account.s.Other] == cloud.Running })
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

func (a *account) checkSelects(f driver.SubnetFilter, want ...string) {
	a.Helper()
	slices.Sort(want)
	if got := a.subnetIDs(f); !slices.Equal(got, want) {
		a.Errorf("the filter %+v selects %v, want %v", f, got, want)
	}
}

func subnetsByID(account *account) {
	account.checkSelects(driver.SubnetFilter{IDs: account.s.Subnets}, slices.Clone(account.s.Subnets)...)
	account.checkSelects(driver.SubnetFilter{IDs: account.s.Subnets[:1]}, account.s.Subnets[0])
	account.checkSelects(driver.SubnetFilter{IDs: []string{account.unknownID("subnet")}})
	account.checkSelects(driver.SubnetFilter{IDs: []string{account.unknownID("subnet"), account.s.Subnets[0]}}, account.s.Subnets[0])
}

func subnetsByTags(account *account) {
	account.checkSelects(driver.SubnetFilter{VPC: account.in.VPC, Tags: account.s.Tags}, account.s.Subnets[0])
	more := maps.Clone(account.s.Tags)
	more["no-subnet-has"] = "this"
	account.checkSelects(driver.SubnetFilter{VPC: account.in.VPC, Tags: more})
	for key := range account.s.Tags {
		account.checkSelects(driver.SubnetFilter{VPC: account.in.VPC, Tags: map[string]string{key: "another-value"}})
	}
	list, err := account.Subnets(account.ctx, driver.SubnetFilter{VPC: account.in.VPC, Tags: account.s.Tags})
	account.must(err)
	for key, value := range account.s.Tags {
		if list[0].Tags[key] != value {
			account.Errorf("the subnet with tags %v is shown with %v", account.s.Tags, list[0].Tags)
		}
	}
}

func subnetsByBoth(account *account) {
	account.checkSelects(driver.SubnetFilter{IDs: account.s.Subnets[1:2], VPC: account.in.VPC, Tags: account.s.Tags}, account.s.Subnets[0], account.s.Subnets[1])
}

func subnetsByNothing(account *account) {
	account.checkSelects(driver.SubnetFilter{})
	account.checkSelects(driver.SubnetFilter{VPC: account.in.VPC})
}

func fieldsOfSubnet(account *account) {
	for _, id := range account.s.Subnets {
		s := account.settledSubnet(id)
		switch {
		case !s.V4.IsValid() && !s.V6.IsValid() || s.V4 != s.V4.Masked() || s.V6 != s.V6.Masked():
			account.Errorf("subnet %s has ranges %s and %s", id, s.V4, s.V6)
		case s.V4.IsValid() && (!s.V4.Addr().Is4() || !s.V4.Contains(s.Gateway4)):
			account.Errorf("subnet %s of range %s has gateway %s", id, s.V4, s.Gateway4)
		case s.V6.IsValid() && (!s.V6.Addr().Is6() || !s.V6.Contains(s.Gateway6) && !s.Gateway6.IsLinkLocalUnicast()):
			account.Errorf("subnet %s of range %s has gateway %s", id, s.V6, s.Gateway6)
		case !s.Ready || account.primary.VPC != "" && s.VPC != "" && s.VPC != account.primary.VPC:
			account.Errorf("subnet %s is ready: %v, of VPC %q", id, s.Ready, s.VPC)
		}
	}
}

func freeIsLeft(account *account) {
	before := account.in.Free
	if before < 0 {
		account.Skip("the cloud does not count")
	}
	if account.has[0] != eni.IPv4 {
		account.Skip("ENIs have no IPv4 addresses")
	}
	used := 0
	if !account.traits.OneNIC {
		used = 1
	}
	on := account.readyENI()
	account.freeIs(before - used)
	some := account.assignSingles(on, eni.IPv4, 3)
	account.freeIs(before - used - 3)
	account.must(account.Unassign(account.ctx, driver.Unassign{On: on, Family: eni.IPv4, Addresses: some[:2], Token: account.newMark().Token}))
	account.freeIs(before - used - 1)
}

func (a *account) freeIs(want int) {
	a.Helper()
	a.waitUntil("Free counts what is left", func() bool { return a.settledSubnet(a.in.ID).Free == want })
}

// unknownID returns an ID that nothing has. It has the form of the cloud's own IDs, if those end in
// digits: some clouds check that.
func (a *account) unknownID(kind string) string {
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
func (a *account) fieldsOf(iface driver.Interface) {
	a.Helper()
	switch {
	case iface.ID == "" || !macFormat.MatchString(iface.MAC) || iface.Subnet == "" || iface.Wrong != "" || iface.Unmanaged != "":
		a.Errorf("an ENI is shown as %+v", iface)
	case !iface.V4.IsValid() && !iface.V6.IsValid() && len(iface.Singles) == 0:
		a.Errorf("ENI %s has no address", iface.ID)
	case iface.V4.IsValid() && !iface.V4.Is4() || iface.V6.IsValid() && !iface.V6.Is6():
		a.Errorf("ENI %s has primary addresses %s and %s", iface.ID, iface.V4, iface.V6)
	case slices.ContainsFunc(iface.Singles, func(x netip.Addr) bool { return x == iface.V4 || x == iface.V6 || !x.IsValid() }):
		a.Errorf("ENI %s has primary addresses %s and %s, and further ones %v", iface.ID, iface.V4, iface.V6, iface.Singles)
	case (iface.State == driver.Attached) != (iface.Instance != "") && iface.State != driver.Attaching && iface.State != driver.Detaching:
		a.Errorf("ENI %s is in state %d at instance %q", iface.ID, iface.State, iface.Instance)
	case iface.Created.After(time.Now().Add(time.Hour)):
		a.Errorf("ENI %s was made at %s", iface.ID, iface.Created)
	}
}
