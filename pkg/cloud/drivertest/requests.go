package drivertest

import (
	"crypto/rand"
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	gocmp "github.com/google/go-cmp/cmp"
)

// requests is what Traits say of the requests of methods: budgets and simulations count by
// that.
var requests = []sentence{
	{"Requests name the actions of each method, and Buckets no others", nil, requestsAreNamed},
	{"Requests are what each method sends", []need{canCountActions, severalNICs}, requestsAreSent},
}

func requestsAreNamed(account *account) {
	methods := []string{"Shape", "Alive", "Subnets", "Interfaces", "Page", "Assign", "Unassign", "SetGroups"}
	if !account.traits.OneNIC {
		methods = append(methods, "Create", "Attach", "Detach", "Delete")
	}
	if account.traits.Types {
		methods = append(methods, "Shapes")
	}
	if account.traits.Keeps {
		methods = append(methods, "Reserve", "Unreserve", "Reservations")
	}
	if account.traits.Binds {
		methods = append(methods, "Bind")
	}
	if account.traits.MarksV6 {
		methods = append(methods, "Rewrite")
	}
	for _, m := range methods {
		if len(account.traits.Requests[m]) == 0 {
			account.Errorf("no action of %s is named", m)
		}
	}
	// A bucket of an action that no method names would never be counted.
	actions := map[string]bool{}
	for _, list := range account.traits.Requests {
		for _, action := range list {
			actions[action] = true
		}
	}
	for action, b := range account.traits.Buckets {
		if !actions[action] || b.Burst < 1 || b.PerSecond <= 0 {
			account.Errorf("%q has bucket %+v", action, b)
		}
	}
}

// requestsAreSent follows an ENI from its creation to its end, with IPv4 only: clouds may have other
// names for the same actions of IPv6.
func requestsAreSent(account *account) {
	var compared []string
	sends := func(part string, call func() error) {
		account.Helper()
		want := map[string]int{}
		for _, action := range account.traits.ActionsOf(part) {
			want[action]++
		}
		before := account.s.Calls()
		err := call()
		if !slices.Contains([]string{driver.AssignPrimary, driver.UnassignPrimary, driver.AssignCross, driver.AssignPrimaryCross}, part) { // what is refused was sent, too
			account.must(err)
		}
		got := account.s.Calls()
		maps.DeleteFunc(got, func(action string, n int) bool { return n == before[action] })
		for action := range got {
			got[action] -= before[action]
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			account.Errorf("requests of %s (-Requests +sent):\n%s", part, diff)
		}
		compared = append(compared, part)
	}
	finds := func(f driver.Filter) {
		account.Helper()
		sends(f.Part(), func() error { _, err := account.Interfaces(account.ctx, f); return err })
	}
	puts := func(on driver.Interface) {
		account.Helper()
		w := driver.Assign{On: on, Family: eni.IPv4, Count: driver.Count{Singles: 2}, Token: rand.Text()}
		sends(w.Part(), func() error { _, err := account.Assign(account.ctx, w); return err })
		u := driver.Unassign{On: on, Family: eni.IPv4, Addresses: account.singlesOf(on.ID, eni.IPv4), Token: rand.Text()}
		if len(u.Addresses) == 0 {
			u.Addresses = append(u.Addresses, account.in.V4.Addr())
		}
		sends(u.Part(), func() error { return account.Unassign(account.ctx, u) })
		// The subnet's own address is nobody's: this is refused, on whatever list the account is.
		w = driver.Assign{On: on, Family: eni.IPv4, Addresses: []netip.Addr{account.in.V4.Addr()}, Subnet: account.in.ID, Token: rand.Text()}
		if _, crosses := account.traits.Requests[w.Part()]; crosses {
			sends(w.Part(), func() error { _, err := account.Assign(account.ctx, w); return err })
		}
	}
	sends("Shape", func() error { _, err := account.Shape(account.ctx, account.self); return err })
	if account.traits.Types {
		sends("Shapes", func() error { _, err := account.Shapes(account.ctx, []string{account.shape.Type}); return err })
	}
	sends("Alive", func() error { _, err := account.Alive(account.ctx, []string{account.self.Instance}); return err })
	for _, f := range []driver.SubnetFilter{{IDs: []string{account.in.ID}}, {IDs: account.s.Subnets}, {IDs: account.s.Subnets, Tags: account.s.Tags, VPC: account.primary.VPC}, {Tags: account.s.Tags, VPC: account.primary.VPC}} {
		if len(f.IDs)+len(f.Tags) > 0 {
			sends(f.Part(), func() error { _, err := account.Subnets(account.ctx, f); return err })
		}
	}
	sends("Page", func() error { _, err := account.Page(account.ctx, driver.Scan{VPC: account.primary.VPC}); return err })

	var made driver.Interface
	w := account.newCreate()
	sends("Create", func() (err error) { made, err = account.Create(account.ctx, w); return err })
	on := account.awaitState(made.ID, driver.Loose)
	finds(driver.Filter{Attached: account.self})
	finds(driver.Filter{Made: account.self.Instance})
	finds(driver.Filter{IDs: []string{on.ID}})
	finds(driver.Filter{Loose: cluster})
	sends("SetGroups", func() error { return account.SetGroups(account.ctx, on.ID, account.primary.Groups, rand.Text()) })
	if account.traits.MarksV6 {
		sends("Rewrite", func() error { return account.Rewrite(account.ctx, on.ID, w.Mark, rand.Text()) })
	}
	at := account.freePlace(on.ID, account.self.Instance)
	sends("Attach", func() error { _, err := account.Attach(account.ctx, at); return err })
	on = account.awaitState(on.ID, driver.Attached)
	if account.traits.Binds {
		sends("Bind", func() error { return account.Bind(account.ctx, on.ID, on.Attachment) })
	}
	puts(on)
	puts(account.primary)
	sends("Detach", func() error { return account.Detach(account.ctx, on, rand.Text()) })
	account.awaitState(on.ID, driver.Loose)
	sends("Delete", func() error { return account.Delete(account.ctx, on.ID, rand.Text()) })

	if account.traits.Keeps {
		var id string
		sends("Reserve", func() (err error) {
			id, err = account.reserveRange(twoOf(account.in.Gateway4.Next().Next().Next().Next()))
			return err
		})
		sends("Reservations", func() error { _, err := account.Reservations(account.ctx, account.in.ID); return err })
		sends("Unreserve", func() error { return account.Unreserve(account.ctx, id) })
	}
	for part := range account.traits.Requests {
		if part != "Bind" && part != "Rewrite" && !slices.Contains(compared, part) {
			account.Errorf("Requests have %s, which is no method nor a part of one", part)
		}
	}
}
