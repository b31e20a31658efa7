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
	{"Create takes counts of blocks where CreateFills", []need{severalNICs, fillsNew, hasBlocks4}, createFillsBlocks},
	{"Create gives an ENI its security groups", []need{severalNICs, hasGroups}, createGroups},
	{"the token makes a repetition lead to the same ENI", []need{severalNICs, needsCapability(Tokens)}, sameTokenSameENI},
	{"with other parameters the token is refused", []need{severalNICs, needsCapability(Tokens), needsCapability(Reuse)}, tokenReused},
	{"other tokens make other ENIs", []need{severalNICs}, otherTokenOtherENI},
	{"Create in a subnet that does not exist is ErrNotFound: NoSuchSubnet if the cloud tells what there is not", []need{severalNICs}, createNowhere},
	{"Create in a full subnet is ErrSubnetFull and makes nothing", []need{severalNICs, canFill}, createInFull},
	{"Create makes nothing where the instance has its primary ENI alone", nil, createsNoSecondNIC},
}

func makesLoose(account *account) {
	before := account.allENIs()
	made := account.looseENI()
	if made.State != driver.Loose || made.Instance != "" || made.Primary {
		account.Errorf("a new ENI is %+v", made)
	}
	before[made.ID] = account.allENIs()[made.ID]
	account.checkUnchanged(before)
}

func returnsTruth(account *account) {
	w := account.newCreate()
	said, err := account.Create(account.ctx, w)
	account.must(err)
	shown := account.awaitState(said.ID, driver.Loose)
	if said.MAC == "" {
		if d := diffValues(driver.Interface{ID: said.ID}, said); d != "" {
			account.Errorf("Create returned more than the ID and no MAC:\n%s", d)
		}
		return
	}
	if said.MAC != shown.MAC || said.V4 != shown.V4 || said.Subnet != shown.Subnet || !slices.Equal(sorted(said.Singles), sorted(shown.Singles)) {
		account.Errorf("Create returned %+v, and made %+v", said, shown)
	}
}

func createFills(account *account) {
	w := account.newCreate()
	w.V4.Singles = 3
	if got := ofFamily(account.createLoose(w).Singles, eni.IPv4); len(got) != 3 {
		account.Errorf("an ENI that was made with 3 addresses has %v", got)
	}
	if !slices.Contains(account.has, eni.IPv6) {
		return
	}
	w = account.newCreate()
	w.V6.Singles = 2
	if got := ofFamily(account.createLoose(w).Singles, eni.IPv6); len(got) != 2 {
		account.Errorf("an ENI that was made with 2 IPv6 addresses besides its own has %v", got)
	}
}

func createFillsBlocks(account *account) {
	if !account.shape.Prefixes {
		account.Skip("the instance takes no prefixes")
	}
	w := account.newCreate()
	w.V4.Blocks = 2
	made := account.createLoose(w)
	if len(made.Blocks) != 2 {
		account.Errorf("an ENI that was made with 2 blocks has %v", made.Blocks)
	}
	account.areBlocks(made.Blocks...)
}

func createGroups(account *account) {
	w := account.newCreate()
	w.Groups = account.s.Groups
	if got := account.createLoose(w).Groups; !slices.Equal(sortedText(got), sortedText(account.s.Groups)) {
		account.Errorf("an ENI that was made with groups %v has %v", account.s.Groups, got)
	}
}

// sameTokenSameENI repeats the request as an engine does that got no answer.
func sameTokenSameENI(account *account) {
	w := account.newCreate()
	one := account.createLoose(w)
	again, err := account.Create(account.ctx, w)
	account.must(err)
	if again.ID != one.ID {
		account.Errorf("one token made ENI %s, and then %s", one.ID, again.ID)
	}
	account.checkFinds(driver.Filter{Made: account.self.Instance}, one.ID)
}

func tokenReused(account *account) {
	w := account.newCreate()
	one := account.createLoose(w)
	other := w
	other.Mark = account.newMark()
	_, err := account.Create(account.ctx, other)
	account.checkReason(err, cloud.TokenReused)
	account.checkFinds(driver.Filter{Made: account.self.Instance}, one.ID)
}

func otherTokenOtherENI(account *account) {
	one, two := account.looseENI(), account.looseENI()
	if one.ID == two.ID || one.MAC == two.MAC || one.V4.IsValid() && one.V4 == two.V4 {
		account.Errorf("two ENIs have something in common: %+v, %+v", one, two)
	}
}

func createNowhere(account *account) {
	before := account.allENIs()
	w := account.newCreate()
	w.Subnet = account.unknownID("subnet")
	_, err := account.Create(account.ctx, w)
	account.checkKind(err, cloud.ErrNotFound)
	account.checkReason(err, cloud.NoSuchSubnet, cloud.Other) // Other: the cloud does not tell what there is not
	account.checkUnchanged(before)
}

func createInFull(account *account) {
	before := account.allENIs()
	account.s.Leave(account.in.ID, 0)
	_, err := account.Create(account.ctx, account.newCreate())
	account.checkKind(err, cloud.ErrSubnetFull)
	account.checkUnchanged(before)
}

func createsNoSecondNIC(account *account) {
	if !account.traits.OneNIC {
		account.Skip("an instance may have several ENIs")
	}
	before := account.allENIs()
	_, err := account.Create(account.ctx, account.newCreate())
	account.checkKind(err, cloud.ErrLimit)
	account.checkUnchanged(before)
}
