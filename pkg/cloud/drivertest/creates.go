package drivertest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// creates is what the comments of Create, and of the Traits about it, say.
var creates = []sentence{
	{"Create makes an ENI that is attached nowhere", []need{severalNICs}, makesLoose},
	{"Create returns what is true of the ENI, or its ID alone", []need{severalNICs}, returnsTruth},
	{"Create takes counts of addresses where CreateFills", []need{severalNICs, fillsNew}, createFills},
	{"Create takes counts of blocks where CreateFills", []need{severalNICs, fillsNew, blocks4}, createFillsBlocks},
	{"Create gives an ENI its security groups", []need{severalNICs, hasGroups}, createGroups},
	{"the token makes a repetition lead to the same ENI", []need{severalNICs, needsCapability(Tokens)}, sameTokenSameENI},
	{"with other parameters the token is refused", []need{severalNICs, needsCapability(Tokens), needsCapability(Reuse)}, tokenReused},
	{"other tokens make other ENIs", []need{severalNICs}, otherTokenOtherENI},
	{"Create in a subnet that does not exist is ErrNotFound", []need{severalNICs}, createNowhere},
	{"Create in a full subnet is ErrSubnetFull and makes nothing", []need{severalNICs, canFill}, createInFull},
	{"Create makes nothing where the instance has its primary ENI alone", nil, createsNoSecondNIC},
}

func makesLoose(a *account) {
	before := a.all()
	made := a.loose()
	if made.State != driver.Loose || made.Instance != "" || made.Primary {
		a.Errorf("a new ENI is %+v", made)
	}
	before[made.ID] = a.all()[made.ID]
	a.unchanged(before)
}

func returnsTruth(a *account) {
	w := a.wish()
	said, err := a.Create(a.ctx, w)
	a.must(err)
	shown := a.awaitState(said.ID, driver.Loose)
	if said.MAC == "" {
		if d := diffValues(driver.Interface{ID: said.ID}, said); d != "" {
			a.Errorf("Create returned more than the ID and no MAC:\n%s", d)
		}
		return
	}
	if said.MAC != shown.MAC || said.V4 != shown.V4 || said.Subnet != shown.Subnet || !slices.Equal(sorted(said.Singles), sorted(shown.Singles)) {
		a.Errorf("Create returned %+v, and made %+v", said, shown)
	}
}

func createFills(a *account) {
	w := a.wish()
	w.V4.Singles = 3
	if got := ofFamily(a.make(w).Singles, eni.IPv4); len(got) != 3 {
		a.Errorf("an ENI that was made with 3 addresses has %v", got)
	}
	if !slices.Contains(a.has, eni.IPv6) {
		return
	}
	w = a.wish()
	w.V6.Singles = 2
	if got := ofFamily(a.make(w).Singles, eni.IPv6); len(got) != 2 {
		a.Errorf("an ENI that was made with 2 IPv6 addresses besides its own has %v", got)
	}
}

func createFillsBlocks(a *account) {
	if !a.shape.Prefixes {
		a.Skip("the instance takes no prefixes")
	}
	w := a.wish()
	w.V4.Blocks = 2
	made := a.make(w)
	if len(made.Blocks) != 2 {
		a.Errorf("an ENI that was made with 2 blocks has %v", made.Blocks)
	}
	a.areBlocks(made.Blocks...)
}

func createGroups(a *account) {
	w := a.wish()
	w.Groups = a.s.Groups
	if got := a.make(w).Groups; !slices.Equal(sortedText(got), sortedText(a.s.Groups)) {
		a.Errorf("an ENI that was made with groups %v has %v", a.s.Groups, got)
	}
}

// sameTokenSameENI repeats the request as an engine does that got no answer.
func sameTokenSameENI(a *account) {
	w := a.wish()
	one := a.make(w)
	again, err := a.Create(a.ctx, w)
	a.must(err)
	if again.ID != one.ID {
		a.Errorf("one token made ENI %s, and then %s", one.ID, again.ID)
	}
	a.finds(driver.Filter{Made: a.self.Instance}, one.ID)
}

func tokenReused(a *account) {
	w := a.wish()
	one := a.make(w)
	other := w
	other.Mark = a.mark()
	_, err := a.Create(a.ctx, other)
	a.because(err, driver.TokenReused)
	a.finds(driver.Filter{Made: a.self.Instance}, one.ID)
}

func otherTokenOtherENI(a *account) {
	one, two := a.loose(), a.loose()
	if one.ID == two.ID || one.MAC == two.MAC || one.V4.IsValid() && one.V4 == two.V4 {
		a.Errorf("two ENIs have something in common: %+v, %+v", one, two)
	}
}

func createNowhere(a *account) {
	before := a.all()
	w := a.wish()
	w.Subnet = a.nobody("subnet")
	_, err := a.Create(a.ctx, w)
	a.is(err, cloud.ErrNotFound)
	a.unchanged(before)
}

func createInFull(a *account) {
	before := a.all()
	a.s.Leave(a.in.ID, 0)
	_, err := a.Create(a.ctx, a.wish())
	a.is(err, cloud.ErrSubnetFull)
	a.unchanged(before)
}

func createsNoSecondNIC(a *account) {
	if !a.traits.OneNIC {
		a.Skip("an instance may have several ENIs")
	}
	before := a.all()
	_, err := a.Create(a.ctx, a.wish())
	a.is(err, cloud.ErrLimit)
	a.unchanged(before)
}
