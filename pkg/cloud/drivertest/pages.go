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

// allPages returns the ENIs of all pages after the lag.
func (a *account) allPages(scan driver.Scan) (all []driver.Interface, count int) {
	a.Helper()
	a.waitForLag()
	for {
		p, err := a.Page(a.ctx, scan)
		a.must(err)
		if most := cmp.Or(a.s.Page, a.traits.PageSize); len(p.Interfaces) > most {
			a.Errorf("a page has %d ENIs, at most %d are said", len(p.Interfaces), most)
		}
		all = append(all, p.Interfaces...)
		if count++; p.Next == "" {
			return all, count
		}
		scan.Next = p.Next
	}
}

// onPages fails the test unless a scan returns these ENIs as Interfaces shows them, without the
// primary ones if the cloud hides those.
func (a *account) onPages(s driver.Scan, want ...driver.Interface) {
	a.Helper()
	got, _ := a.allPages(s)
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

func pagesOfVPC(account *account) {
	// One more ENI than a page has, so that there is a second page.
	made := []driver.Interface{account.readyENI()}
	for range max(account.s.Page, 1) {
		made = append(made, account.looseENI())
	}
	all, count := account.allPages(driver.Scan{VPC: account.primary.VPC})
	for _, want := range made {
		at := slices.IndexFunc(all, func(i driver.Interface) bool { return i.ID == want.ID })
		if at < 0 {
			account.Errorf("ENI %s is on no page", want.ID)
		} else if d := diffValues(want, all[at]); d != "" {
			account.Errorf("an ENI differs from what Interfaces shows (-Interfaces +Page):\n%s", d)
		}
	}
	if account.s.Page > 0 && count < 2 {
		account.Errorf("%d ENIs are on one page", len(all))
	}
	if none, _ := account.allPages(driver.Scan{VPC: account.unknownID("vpc")}); len(none) > 0 {
		account.Errorf("another VPC has %+v", none)
	}
}

func pagesOfSeveral(account *account) {
	want := append(account.settledENIs(driver.Filter{Attached: account.self}), account.settledENIs(driver.Filter{Attached: account.instanceLike(account.s.Other)})...)
	if !account.traits.OneNIC {
		account.looseENI()
		want = append(want, account.readyENI(), account.attachTo(account.looseENI().ID, account.s.Other))
	}
	both := []string{account.self.Instance, account.s.Other}
	account.onPages(driver.Scan{Attached: both}, want...)
	here := slices.DeleteFunc(want, func(i driver.Interface) bool { return i.Instance != account.self.Instance })
	account.onPages(driver.Scan{Attached: append(both[:1:1], account.unknownID("i"))}, here...)
}

func pagesOfMade(account *account) {
	on, loose := account.readyENI(), account.looseENI()
	w := account.newCreate()
	w.Mark.Instance = account.s.Other
	theirs := account.createLoose(w)
	account.onPages(driver.Scan{Made: []string{account.self.Instance, account.s.Other}}, on, loose, theirs)
	account.onPages(driver.Scan{Made: []string{account.unknownID("i"), account.s.Other}}, theirs)
}

func pagesHidePrimary(account *account) {
	all, _ := account.allPages(driver.Scan{VPC: account.primary.VPC})
	has := slices.ContainsFunc(all, func(i driver.Interface) bool { return i.ID == account.primary.ID })
	if has == account.traits.HidesPrimary {
		account.Errorf("the primary ENI %s is among %+v: %t", account.primary.ID, all, has)
	}
}
