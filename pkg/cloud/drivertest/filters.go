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

func (a *account) checkFinds(f driver.Filter, want ...string) {
	a.Helper()
	slices.Sort(want)
	if got := a.settledIDs(f); !slices.Equal(got, want) {
		a.Errorf("the filter %+v selects %v, want %v", f, got, want)
	}
}

func attachedHere(account *account) {
	if account.traits.OneNIC {
		account.checkFinds(driver.Filter{Attached: account.self}, account.primary.ID)
		return
	}
	on, _ := account.readyENI(), account.looseENI()
	account.checkFinds(driver.Filter{Attached: account.self}, account.primary.ID, on.ID)
}

func attachedThere(account *account) {
	theirs := account.settledIDs(driver.Filter{Attached: account.instanceLike(account.s.Other)})
	on := account.attachTo(account.looseENI().ID, account.s.Other)
	account.checkFinds(driver.Filter{Attached: account.self}, account.primary.ID)
	account.checkFinds(driver.Filter{Attached: account.instanceLike(account.s.Other)}, append(theirs, on.ID)...)
	if on.Instance != account.s.Other {
		account.Errorf("ENI %s of instance %s is shown at %q", on.ID, account.s.Other, on.Instance)
	}
}

// attachedOnTheWay can tell only where two reads show the same moment.
func attachedOnTheWay(account *account) {
	on := account.looseENI()
	_, err := account.Attach(account.ctx, account.freePlace(on.ID, account.self.Instance))
	account.must(err)
	account.onTheWay(on.ID, driver.Attaching)
	on = account.awaitState(on.ID, driver.Attached)
	account.must(account.Detach(account.ctx, on, account.newMark().Token))
	account.onTheWay(on.ID, driver.Detaching)
}

func (a *account) onTheWay(id string, state driver.State) {
	a.Helper()
	if a.s.Lag > 0 {
		return
	}
	before := a.settledENI(id)
	here := a.settledENIs(driver.Filter{Attached: a.self})
	after := a.settledENI(id)
	if before.State != state || after.State != state {
		return
	}
	at := slices.IndexFunc(here, func(i driver.Interface) bool { return i.ID == id })
	if at < 0 {
		a.Fatalf("ENI %s in state %d is not shown at its instance: %+v", id, state, here)
	}
	if here[at].Instance != a.self.Instance {
		a.Errorf("ENI %s in state %d is of instance %q", id, state, here[at].Instance)
	}
}

func madeForIt(account *account) {
	on, loose := account.readyENI(), account.looseENI()
	other := account.newCreate()
	other.Mark.Instance = account.unknownID("i")
	theirs := account.createLoose(other)
	account.checkFinds(driver.Filter{Made: account.self.Instance}, on.ID, loose.ID)
	account.checkFinds(driver.Filter{Made: other.Mark.Instance}, theirs.ID)
}

func madeWithToken(account *account) {
	one, two := account.looseENI(), account.looseENI()
	account.checkFinds(driver.Filter{Made: account.self.Instance, Token: one.Mark.Token}, one.ID)
	account.checkFinds(driver.Filter{Made: account.self.Instance, Token: two.Mark.Token}, two.ID)
	account.checkFinds(driver.Filter{Made: account.unknownID("i"), Token: two.Mark.Token})
}

func byIDs(account *account) {
	on, loose := account.readyENI(), account.looseENI()
	account.looseENI()
	account.checkFinds(driver.Filter{IDs: []string{on.ID, loose.ID}}, on.ID, loose.ID)
	account.checkFinds(driver.Filter{IDs: []string{loose.ID}}, loose.ID)
	account.checkFinds(driver.Filter{IDs: []string{account.unknownID("eni"), loose.ID}}, loose.ID)
}

func looseOfCluster(account *account) {
	account.readyENI()
	loose := account.looseENI()
	other := account.newCreate()
	other.Mark.Cluster = "another"
	account.createLoose(other)
	account.checkFinds(driver.Filter{Loose: cluster}, loose.ID)
}

func unknownSelectsNone(account *account) {
	account.readyENI()
	account.checkFinds(driver.Filter{Attached: account.instanceLike(account.unknownID("i"))})
	account.checkFinds(driver.Filter{Made: account.unknownID("i")})
	account.checkFinds(driver.Filter{Made: account.self.Instance, Token: "of-nobody"})
	account.checkFinds(driver.Filter{IDs: []string{account.unknownID("eni")}})
	account.checkFinds(driver.Filter{Loose: "of-nobody"})
}

func fromAllPages(account *account) {
	var want []string
	for range account.s.Page + 1 {
		want = append(want, account.looseENI().ID)
	}
	account.checkFinds(driver.Filter{Made: account.self.Instance}, slices.Clone(want)...)
	account.checkFinds(driver.Filter{Loose: cluster}, want...)
}

func fieldsOfInterface(account *account) {
	account.fieldsOf(account.primary)
	if account.traits.OneNIC {
		return
	}
	w := account.newCreate()
	loose := account.createLoose(w)
	account.fieldsOf(loose)
	on := account.attachTo(loose.ID, account.self.Instance)
	account.fieldsOf(on)
	for _, i := range []driver.Interface{loose, on} {
		if d := diffValues(w.Mark, i.Mark); d != "" {
			account.Errorf("ENI %s is not marked as it was (-written +shown):\n%s", i.ID, d)
		}
		if i.Subnet != account.in.ID || i.MAC != loose.MAC || !i.Mark.Ours(account.self.Instance) {
			account.Errorf("the ENI for %+v is %+v", w, i)
		}
	}
	if loose.State != driver.Loose || loose.Instance != "" || loose.Attachment != "" || on.State != driver.Attached || on.Instance != account.self.Instance {
		account.Errorf("an ENI before it is attached and then: %+v\n%+v", loose, on)
	}
}

func primaryIsBorn(account *account) {
	if account.primary.Mark.Token != "" {
		account.Errorf("the primary ENI has mark %+v", account.primary.Mark)
	}
	if account.traits.OneNIC {
		return
	}
	if account.looseENI().Primary || account.readyENI().Primary {
		account.Error("an ENI that was made is shown as the primary one")
	}
}

func primaryV6(account *account) {
	if !slices.Contains(account.has, eni.IPv6) {
		account.Skip("ENIs have no IPv6 addresses")
	}
	on := account.readyENI()
	if account.traits.MarksV6 {
		if on.V6.IsValid() || len(account.singlesOf(on.ID, eni.IPv6)) == 0 {
			account.Errorf("a cloud that does not tell which IPv6 address is primary shows %+v", on)
		}
		return
	}
	if !account.in.V6.Contains(on.V6) || len(account.singlesOf(on.ID, eni.IPv6)) > 0 {
		account.Errorf("an ENI in a subnet of %s has primary %s and further addresses %v", account.in.V6, on.V6, on.Singles)
	}
}

// showsWhatHasBeen changes one address at a time, so that no state lies between.
func showsWhatHasBeen(account *account) {
	on, family := account.readyENI(), account.has[0]
	now := account.singlesOf(on.ID, family)
	been := [][]string{texts(now)}
	for round := range 6 {
		if round%3 == 2 {
			gone := now[len(now)-1:]
			account.must(account.Unassign(account.ctx, driver.Unassign{On: on, Family: family, Addresses: gone, Token: account.newMark().Token}))
			now = without(now, gone)
		} else {
			got, err := account.Assign(account.ctx, driver.Assign{On: on, Family: family, Count: driver.Count{Singles: 1}, Token: account.newMark().Token})
			account.must(err)
			now = append(now, without(got.Addresses, now)...)
		}
		been = append(been, texts(now))
		for range 3 {
			account.hasBeen(on.ID, family, been)
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
