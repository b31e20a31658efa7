package drivertest

import (
	"cmp"
	"slices"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// pages is what the comments of Page, Scan and the Traits about them say.
var pages = []sentence{
	{"Page returns the ENIs of the VPC, page by page", []need{severalNICs}, pagesOfVPC},
	{"Page returns the ENIs of several instances, and no others", []need{hasOther, scansSeveral}, pagesOfSeveral},
	{"Page returns the ENIs that were made for several instances, and no others", []need{hasOther, scansSeveral, severalNICs}, pagesOfMade},
	{"HidesPrimary: a Page lacks the primary ENIs of instances, else it has them", nil, pagesHidePrimary},
}

// scan returns the ENIs of all pages when they have settled.
func (a *account) scan(s driver.Scan) (all []driver.Interface, count int) {
	a.Helper()
	a.settle()
	for {
		p, err := a.Page(a.ctx, s)
		a.must(err)
		if most := cmp.Or(a.s.Page, a.traits.PageSize); len(p.Interfaces) > most {
			a.Errorf("a page has %d ENIs, at most %d are said", len(p.Interfaces), most)
		}
		all = append(all, p.Interfaces...)
		if count++; p.Next == "" {
			return all, count
		}
		s.Next = p.Next
	}
}

// onPages fails the test unless a scan returns what Interfaces shows, and of the hidden
// primary ENIs none.
func (a *account) onPages(s driver.Scan, want ...driver.Interface) {
	a.Helper()
	got, _ := a.scan(s)
	if a.traits.HidesPrimary {
		want = slices.DeleteFunc(want, func(i driver.Interface) bool { return i.Primary })
	}
	byID := func(x, y driver.Interface) int { return cmp.Compare(x.ID, y.ID) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if d := diffValues(want, got); d != "" {
		a.Errorf("scan %+v differs from Interfaces (-Interfaces +Page):\n%s", s, d)
	}
}

func pagesOfVPC(a *account) {
	made := []driver.Interface{a.ready()}
	for range max(a.s.Page, 1) {
		made = append(made, a.loose())
	}
	all, count := a.scan(driver.Scan{VPC: a.primary.VPC})
	for _, want := range made {
		at := slices.IndexFunc(all, func(i driver.Interface) bool { return i.ID == want.ID })
		if at < 0 {
			a.Errorf("ENI %s is on no page", want.ID)
		} else if d := diffValues(want, all[at]); d != "" {
			a.Errorf("an ENI differs from what Interfaces shows (-Interfaces +Page):\n%s", d)
		}
	}
	if a.s.Page > 0 && count < 2 {
		a.Errorf("%d ENIs are on one page", len(all))
	}
	if none, _ := a.scan(driver.Scan{VPC: a.nobody("vpc")}); len(none) > 0 {
		a.Errorf("another VPC has %+v", none)
	}
}

func pagesOfSeveral(a *account) {
	want := append(a.look(driver.Filter{Attached: a.self}), a.look(driver.Filter{Attached: a.instance(a.s.Other)})...)
	if !a.traits.OneNIC {
		a.loose()
		want = append(want, a.ready(), a.attachTo(a.loose().ID, a.s.Other))
	}
	both := []string{a.self.Instance, a.s.Other}
	a.onPages(driver.Scan{Attached: both}, want...)
	here := slices.DeleteFunc(want, func(i driver.Interface) bool { return i.Instance != a.self.Instance })
	a.onPages(driver.Scan{Attached: append(both[:1:1], a.nobody("i"))}, here...)
}

func pagesOfMade(a *account) {
	on, loose := a.ready(), a.loose()
	w := a.wish()
	w.Mark.Instance = a.s.Other
	theirs := a.make(w)
	a.onPages(driver.Scan{Made: []string{a.self.Instance, a.s.Other}}, on, loose, theirs)
	a.onPages(driver.Scan{Made: []string{a.nobody("i"), a.s.Other}}, theirs)
}

func pagesHidePrimary(a *account) {
	all, _ := a.scan(driver.Scan{VPC: a.primary.VPC})
	has := slices.ContainsFunc(all, func(i driver.Interface) bool { return i.ID == a.primary.ID })
	if has == a.traits.HidesPrimary {
		a.Errorf("the primary ENI %s is among %+v: %t", a.primary.ID, all, has)
	}
}
