package drivertest

import (
	"crypto/rand"
	"maps"
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

func requestsAreNamed(a *account) {
	methods := []string{"Shape", "Alive", "Subnets", "Interfaces", "Page", "Assign", "Unassign", "SetGroups"}
	if !a.traits.OneNIC {
		methods = append(methods, "Create", "Attach", "Detach", "Delete")
	}
	if a.traits.Types {
		methods = append(methods, "Shapes")
	}
	if a.traits.Keeps {
		methods = append(methods, "Reserve", "Unreserve", "Reservations")
	}
	if a.traits.Binds {
		methods = append(methods, "Bind")
	}
	if a.traits.MarksV6 {
		methods = append(methods, "Rewrite")
	}
	for _, m := range methods {
		if len(a.traits.Requests[m]) == 0 {
			a.Errorf("no action of %s is named", m)
		}
	}
	actions := map[string]bool{}
	for _, list := range a.traits.Requests {
		for _, action := range list {
			actions[action] = true
		}
	}
	for action, b := range a.traits.Buckets {
		if !actions[action] || b.Burst < 1 || b.PerSecond <= 0 {
			a.Errorf("%q has bucket %+v", action, b)
		}
	}
}

// requestsAreSent goes by an ENI's life of IPv4 alone: of IPv6 clouds may call the same
// another name.
func requestsAreSent(a *account) {
	var compared []string
	sends := func(part string, call func() error) {
		a.Helper()
		want := map[string]int{}
		for _, action := range a.traits.ActionsOf(part) {
			want[action]++
		}
		before := a.s.Calls()
		err := call()
		if part != driver.AssignPrimary && part != driver.UnassignPrimary { // what is refused was sent, too
			a.must(err)
		}
		got := a.s.Calls()
		maps.DeleteFunc(got, func(action string, n int) bool { return n == before[action] })
		for action := range got {
			got[action] -= before[action]
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			a.Errorf("requests of %s (-Requests +sent):\n%s", part, diff)
		}
		compared = append(compared, part)
	}
	finds := func(f driver.Filter) {
		a.Helper()
		sends(f.Part(), func() error { _, err := a.Interfaces(a.ctx, f); return err })
	}
	puts := func(on driver.Interface) {
		a.Helper()
		w := driver.Assign{On: on, Family: eni.IPv4, Count: driver.Count{Singles: 2}, Token: rand.Text()}
		sends(w.Part(), func() error { _, err := a.Assign(a.ctx, w); return err })
		u := driver.Unassign{On: on, Family: eni.IPv4, Addresses: a.addresses(on.ID, eni.IPv4), Token: rand.Text()}
		if len(u.Addresses) == 0 {
			u.Addresses = append(u.Addresses, a.in.V4.Addr())
		}
		sends(u.Part(), func() error { return a.Unassign(a.ctx, u) })
	}
	sends("Shape", func() error { _, err := a.Shape(a.ctx, a.self); return err })
	if a.traits.Types {
		sends("Shapes", func() error { _, err := a.Shapes(a.ctx, []string{a.shape.Type}); return err })
	}
	sends("Alive", func() error { _, err := a.Alive(a.ctx, []string{a.self.Instance}); return err })
	for _, f := range []driver.SubnetFilter{{IDs: []string{a.in.ID}}, {IDs: a.s.Subnets}, {IDs: a.s.Subnets, Tags: a.s.Tags, VPC: a.primary.VPC}, {Tags: a.s.Tags, VPC: a.primary.VPC}} {
		if len(f.IDs)+len(f.Tags) > 0 {
			sends(f.Part(), func() error { _, err := a.Subnets(a.ctx, f); return err })
		}
	}
	sends("Page", func() error { _, err := a.Page(a.ctx, driver.Scan{VPC: a.primary.VPC}); return err })

	var made driver.Interface
	w := a.wish()
	sends("Create", func() (err error) { made, err = a.Create(a.ctx, w); return err })
	on := a.awaitState(made.ID, driver.Loose)
	finds(driver.Filter{Attached: a.self})
	finds(driver.Filter{Made: a.self.Instance})
	finds(driver.Filter{IDs: []string{on.ID}})
	finds(driver.Filter{Loose: cluster})
	sends("SetGroups", func() error { return a.SetGroups(a.ctx, on.ID, a.primary.Groups, rand.Text()) })
	if a.traits.MarksV6 {
		sends("Rewrite", func() error { return a.Rewrite(a.ctx, on.ID, w.Mark, rand.Text()) })
	}
	at := a.place(on.ID, a.self.Instance)
	sends("Attach", func() error { _, err := a.Attach(a.ctx, at); return err })
	on = a.awaitState(on.ID, driver.Attached)
	if a.traits.Binds {
		sends("Bind", func() error { return a.Bind(a.ctx, on.ID, on.Attachment) })
	}
	puts(on)
	puts(a.primary)
	sends("Detach", func() error { return a.Detach(a.ctx, on, rand.Text()) })
	a.awaitState(on.ID, driver.Loose)
	sends("Delete", func() error { return a.Delete(a.ctx, on.ID, rand.Text()) })

	if a.traits.Keeps {
		var id string
		sends("Reserve", func() (err error) { id, err = a.reserve(twoOf(a.in.Gateway4.Next().Next().Next().Next())); return err })
		sends("Reservations", func() error { _, err := a.Reservations(a.ctx, a.in.ID); return err })
		sends("Unreserve", func() error { return a.Unreserve(a.ctx, id) })
	}
	for part := range a.traits.Requests {
		if part != "Bind" && part != "Rewrite" && !slices.Contains(compared, part) {
			a.Errorf("Requests have %s, which is no method nor a part of one", part)
		}
	}
}
