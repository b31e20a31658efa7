package drivertest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// filters is what the comments of Interfaces, Filter and Interface say.
var filters = []sentence{
	{"Attached selects the ENIs of the instance, its primary ENI among them", nil, attachedHere},
	{"Attached selects no ENI of another instance", []need{hasOther, severalNICs}, attachedThere},
	{"Attached selects ENIs on their way to or from the instance", []need{severalNICs}, attachedOnTheWay},
	{"Made selects ENIs with a mark for the instance, attached or not", []need{severalNICs}, madeForIt},
	{"Token selects those of Made with this token in the mark", []need{severalNICs}, madeWithToken},
	{"IDs selects the ENIs with these IDs", []need{severalNICs}, byIDs},
	{"Loose selects ENIs with a mark of the cluster that are attached nowhere", []need{severalNICs}, looseOfCluster},
	{"an unknown instance, token or ID selects none", nil, unknownSelectsNone},
	{"Interfaces returns ENIs from all pages", []need{hasPages, severalNICs}, fromAllPages},
	{"an Interface has the fields that its comments promise", nil, fieldsOfInterface},
	{"Primary is the ENI that the instance was born with", nil, primaryIsBorn},
	{"V6 is the primary IPv6 address unless MarksV6", []need{severalNICs}, primaryV6},
	{"Interfaces may lag but never shows what has never been", nil, showsWhatHasBeen},
}

func (a *account) finds(f driver.Filter, want ...string) {
	a.Helper()
	slices.Sort(want)
	if got := a.ids(f); !slices.Equal(got, want) {
		a.Errorf("the filter %+v selects %v, want %v", f, got, want)
	}
}

func attachedHere(a *account) {
	if a.traits.OneNIC {
		a.finds(driver.Filter{Attached: a.self}, a.primary.ID)
		return
	}
	on, _ := a.ready(), a.loose()
	a.finds(driver.Filter{Attached: a.self}, a.primary.ID, on.ID)
}

func attachedThere(a *account) {
	theirs := a.ids(driver.Filter{Attached: a.instance(a.s.Other)})
	on := a.attachTo(a.loose().ID, a.s.Other)
	a.finds(driver.Filter{Attached: a.self}, a.primary.ID)
	a.finds(driver.Filter{Attached: a.instance(a.s.Other)}, append(theirs, on.ID)...)
	if on.Instance != a.s.Other {
		a.Errorf("ENI %s of instance %s is shown at %q", on.ID, a.s.Other, on.Instance)
	}
}

// attachedOnTheWay can tell only where two reads show the same moment.
func attachedOnTheWay(a *account) {
	on := a.loose()
	_, err := a.Attach(a.ctx, a.place(on.ID, a.self.Instance))
	a.must(err)
	a.onTheWay(on.ID, driver.Attaching)
	on = a.awaitState(on.ID, driver.Attached)
	a.must(a.Detach(a.ctx, on, a.mark().Token))
	a.onTheWay(on.ID, driver.Detaching)
}

func (a *account) onTheWay(id string, s driver.State) {
	a.Helper()
	if a.s.Lag > 0 {
		return
	}
	before := a.one(id)
	here := a.look(driver.Filter{Attached: a.self})
	after := a.one(id)
	if before.State != s || after.State != s {
		return
	}
	at := slices.IndexFunc(here, func(i driver.Interface) bool { return i.ID == id })
	if at < 0 {
		a.Fatalf("ENI %s in state %d is not shown at its instance: %+v", id, s, here)
	}
	if here[at].Instance != a.self.Instance {
		a.Errorf("ENI %s in state %d is of instance %q", id, s, here[at].Instance)
	}
}

func madeForIt(a *account) {
	on, loose := a.ready(), a.loose()
	other := a.wish()
	other.Mark.Instance = a.nobody("i")
	theirs := a.make(other)
	a.finds(driver.Filter{Made: a.self.Instance}, on.ID, loose.ID)
	a.finds(driver.Filter{Made: other.Mark.Instance}, theirs.ID)
}

func madeWithToken(a *account) {
	one, two := a.loose(), a.loose()
	a.finds(driver.Filter{Made: a.self.Instance, Token: one.Mark.Token}, one.ID)
	a.finds(driver.Filter{Made: a.self.Instance, Token: two.Mark.Token}, two.ID)
	a.finds(driver.Filter{Made: a.nobody("i"), Token: two.Mark.Token})
}

func byIDs(a *account) {
	on, loose := a.ready(), a.loose()
	a.loose()
	a.finds(driver.Filter{IDs: []string{on.ID, loose.ID}}, on.ID, loose.ID)
	a.finds(driver.Filter{IDs: []string{loose.ID}}, loose.ID)
	a.finds(driver.Filter{IDs: []string{a.nobody("eni"), loose.ID}}, loose.ID)
}

func looseOfCluster(a *account) {
	a.ready()
	loose := a.loose()
	other := a.wish()
	other.Mark.Cluster = "another"
	a.make(other)
	a.finds(driver.Filter{Loose: cluster}, loose.ID)
}

func unknownSelectsNone(a *account) {
	a.ready()
	a.finds(driver.Filter{Attached: a.instance(a.nobody("i"))})
	a.finds(driver.Filter{Made: a.nobody("i")})
	a.finds(driver.Filter{Made: a.self.Instance, Token: "of-nobody"})
	a.finds(driver.Filter{IDs: []string{a.nobody("eni")}})
	a.finds(driver.Filter{Loose: "of-nobody"})
}

func fromAllPages(a *account) {
	var want []string
	for range a.s.Page + 1 {
		want = append(want, a.loose().ID)
	}
	a.finds(driver.Filter{Made: a.self.Instance}, slices.Clone(want)...)
	a.finds(driver.Filter{Loose: cluster}, want...)
}

func fieldsOfInterface(a *account) {
	a.fieldsOf(a.primary)
	if a.traits.OneNIC {
		return
	}
	w := a.wish()
	loose := a.make(w)
	a.fieldsOf(loose)
	on := a.attachTo(loose.ID, a.self.Instance)
	a.fieldsOf(on)
	for _, i := range []driver.Interface{loose, on} {
		if d := diffValues(w.Mark, i.Mark); d != "" {
			a.Errorf("ENI %s is not marked as it was (-written +shown):\n%s", i.ID, d)
		}
		if i.Subnet != a.in.ID || i.MAC != loose.MAC || !i.Mark.Ours(a.self.Instance) {
			a.Errorf("the ENI for %+v is %+v", w, i)
		}
	}
	if loose.State != driver.Loose || loose.Instance != "" || loose.Attachment != "" || on.State != driver.Attached || on.Instance != a.self.Instance {
		a.Errorf("an ENI before it is attached and then: %+v\n%+v", loose, on)
	}
}

func primaryIsBorn(a *account) {
	if a.primary.Mark.Token != "" {
		a.Errorf("the primary ENI has mark %+v", a.primary.Mark)
	}
	if a.traits.OneNIC {
		return
	}
	if a.loose().Primary || a.ready().Primary {
		a.Error("an ENI that was made is shown as the primary one")
	}
}

func primaryV6(a *account) {
	if !slices.Contains(a.has, eni.IPv6) {
		a.Skip("ENIs have no IPv6 addresses")
	}
	on := a.ready()
	if a.traits.MarksV6 {
		if on.V6.IsValid() || len(a.addresses(on.ID, eni.IPv6)) == 0 {
			a.Errorf("a cloud that does not tell which IPv6 address is primary shows %+v", on)
		}
		return
	}
	if !a.in.V6.Contains(on.V6) || len(a.addresses(on.ID, eni.IPv6)) > 0 {
		a.Errorf("an ENI in a subnet of %s has primary %s and further addresses %v", a.in.V6, on.V6, on.Singles)
	}
}

// showsWhatHasBeen changes one address at a time, so that no state lies between.
func showsWhatHasBeen(a *account) {
	on, f := a.ready(), a.has[0]
	now := a.addresses(on.ID, f)
	been := [][]string{texts(now)}
	for round := range 6 {
		if round%3 == 2 {
			gone := now[len(now)-1:]
			a.must(a.Unassign(a.ctx, driver.Unassign{On: on, Family: f, Addresses: gone, Token: a.mark().Token}))
			now = without(now, gone)
		} else {
			got, err := a.Assign(a.ctx, driver.Assign{On: on, Family: f, Count: driver.Count{Singles: 1}, Token: a.mark().Token})
			a.must(err)
			now = append(now, without(got.Addresses, now)...)
		}
		been = append(been, texts(now))
		for range 3 {
			a.hasBeen(on.ID, f, been)
		}
	}
}

func (a *account) hasBeen(id string, f eni.Family, been [][]string) {
	a.Helper()
	list, err := a.Interfaces(a.ctx, driver.Filter{Attached: a.self})
	a.must(err)
	at := slices.IndexFunc(list, func(i driver.Interface) bool { return i.ID == id })
	if at < 0 {
		a.Fatalf("ENI %s is not shown, which was attached all the time", id)
	}
	got := texts(ofFamily(list[at].Singles, f))
	if !slices.ContainsFunc(been, func(b []string) bool { return slices.Equal(b, got) }) {
		a.Fatalf("Interfaces shows addresses %v, it has been %v", got, been)
	}
	a.pause(a.s.Lag / 5)
}
