package drivertest

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// assigns is what the comments of Assign, and of the Traits about it, say.
var assigns = []sentence{
	{"Assign puts addresses on the ENI and returns them", nil, putsAndReturns},
	{"Assign puts addresses of the family", nil, putsOfFamily},
	{"Assign puts PerCall addresses in one call", nil, putsPerCall},
	{"AllOrNothing: Assign puts all that it is asked for, or refuses; else it may put fewer", []need{canFill}, putsAllOrNothing},
	{"Assign from a full subnet is ErrSubnetFull, or puts nothing", []need{canFill}, putsNothingInFull},
	{"Assign on an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, putsNowhere},
	{"AssignTokens: a repetition has no second effect", []need{assignTokens}, putsOnce},
	{"Assign puts blocks of Bits4", []need{hasBlocks4}, putsBlocks},
	{"Assign of a block from a subnet without one is refused: NoWholeBlock", []need{hasBlocks4, canBreak}, putsNoBlock},
}

// unassigns is what the comments of Unassign say.
var unassigns = []sentence{
	{"Unassign takes addresses from the ENI", nil, takesAddresses},
	{"Unassign takes blocks from the ENI", []need{hasBlocks4}, takesBlocks},
	{"Unassign of an address that the ENI lacks is refused, NoSuchAddress, and nothing happens", nil, takesWhatIsNot},
	{"Unassign of a block that the ENI lacks is refused, NoSuchAddress, and nothing happens", []need{hasBlocks4}, takesBlocksThatAreNot},
	{"Unassign from an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, takesFromNobody},
}

func ofFamily(list []netip.Addr, f eni.Family) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(list), func(x netip.Addr) bool { return eni.FamilyOf(x) != f })
}

func sorted(list []netip.Addr) []netip.Addr {
	return slices.SortedFunc(slices.Values(list), netip.Addr.Compare)
}

func sortedText(list []string) []string { return slices.Sorted(slices.Values(list)) }

// texts returns addresses in their order, to compare them.
func texts(list []netip.Addr) (out []string) {
	for _, x := range sorted(list) {
		out = append(out, x.String())
	}
	return out
}

func (a *account) pause(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// assignCount is Assign of count to the ENI, with a token of its own.
func (a *account) assignCount(on driver.Interface, f eni.Family, count driver.Count) (driver.Assigned, error) {
	return a.Assign(a.ctx, driver.Assign{On: on, Family: f, Count: count, Token: a.newMark().Token})
}

// unassignFrom is Unassign of single addresses of the ENI.
func (a *account) unassignFrom(on driver.Interface, f eni.Family, addrs ...netip.Addr) error {
	return a.Unassign(a.ctx, driver.Unassign{On: on, Family: f, Addresses: addrs, Token: a.newMark().Token})
}

// checkCarries fails the test unless the ENI has exactly these further addresses of a family.
func (a *account) checkCarries(id string, f eni.Family, want []netip.Addr) {
	a.Helper()
	if got := a.singlesOf(id, f); !slices.Equal(got, sorted(want)) {
		a.Fatalf("ENI %s has %s addresses %v, want %v", id, f, got, sorted(want))
	}
}

func putsAndReturns(account *account) {
	on := account.readyENI()
	for _, f := range account.has {
		before := account.singlesOf(on.ID, f)
		got, err := account.assignCount(on, f, driver.Count{Singles: 2})
		account.must(err)
		fresh := without(account.singlesOf(on.ID, f), before)
		if len(fresh) != 2 || len(without(fresh, got.Addresses)) > 0 || len(got.Blocks) > 0 {
			account.Errorf("Assign of 2 returned %+v and put %v", got, fresh)
		}
		if more := without(got.Addresses, append(append(fresh, before...), on.V4, on.V6)); len(more) > 0 {
			account.Errorf("Assign returned %v, which the ENI does not have", more)
		}
	}
}

func putsOfFamily(account *account) {
	on := account.readyENI()
	for _, f := range account.has {
		before := account.allENIs()[on.ID]
		got, err := account.assignCount(on, f, driver.Count{Singles: 1})
		account.must(err)
		if len(ofFamily(got.Addresses, f)) != len(got.Addresses) || len(got.Addresses) == 0 {
			account.Errorf("Assign of %s returned %v", f, got.Addresses)
		}
		for _, x := range without(account.settledENI(on.ID).Singles, before.Singles) {
			if eni.FamilyOf(x) != f || !account.mayHave(x) {
				account.Errorf("Assign of %s put %s in subnet %+v", f, x, account.in)
			}
		}
	}
}

// mayHave tells whether an address can be one of an ENI in the subnet.
func (a *account) mayHave(x netip.Addr) bool {
	pods := slices.DeleteFunc(slices.Clone(a.in.Pods), func(p netip.Prefix) bool { return p.Addr().Is4() != x.Is4() })
	if len(pods) > 0 {
		return slices.ContainsFunc(pods, func(p netip.Prefix) bool { return p.Contains(x) })
	}
	return x != a.in.Gateway4 && x != a.in.Gateway6 && (a.in.V4.Contains(x) || a.in.V6.Contains(x))
}

func putsPerCall(account *account) {
	on, f := account.readyENI(), account.has[0]
	most := account.spareAddresses(f) - len(account.singlesOf(on.ID, f))
	if account.traits.PerCall > 0 {
		most = min(most, account.traits.PerCall)
	}
	some := account.assignSingles(on, f, most)
	account.must(account.unassignFrom(on, f, some...))
	account.checkCarries(on.ID, f, without(account.singlesOf(on.ID, f), some))
}

// putsAllOrNothing asks for 3 where 2 are left.
func putsAllOrNothing(account *account) {
	on, family := account.readyENI(), account.has[0]
	account.s.Leave(account.in.ID, 2)
	before := account.singlesOf(on.ID, family)
	got, err := account.assignCount(on, family, driver.Count{Singles: 3})
	fresh := without(account.singlesOf(on.ID, family), before)
	switch {
	case err != nil:
		account.checkKind(err, cloud.ErrSubnetFull)
		if len(fresh) > 0 {
			account.Errorf("Assign was refused and put %v", fresh)
		}
	case account.traits.AllOrNothing:
		account.Errorf("Assign of 3 addresses where 2 are left returned %v", got)
	case len(fresh) > 2 || len(without(fresh, got.Addresses)) > 0:
		account.Errorf("Assign of 3 addresses where 2 are left returned %v and put %v", got, fresh)
	}
	account.assignSingles(on, family, 2) // which there are, unless they came
}

func putsNothingInFull(account *account) {
	on, f := account.readyENI(), account.has[0]
	account.s.Leave(account.in.ID, 0)
	before := account.allENIs()
	got, err := account.assignCount(on, f, driver.Count{Singles: 1})
	switch {
	case err != nil:
		account.checkKind(err, cloud.ErrSubnetFull)
	case account.traits.AllOrNothing || len(without(got.Addresses, append(before[on.ID].Singles, on.V4, on.V6))) > 0:
		account.Errorf("Assign from a full subnet returned %v", got)
	}
	account.checkUnchanged(before)
}

func putsNowhere(account *account) {
	gone := account.looseENI()
	account.must(account.Delete(account.ctx, gone.ID, account.newMark().Token))
	before := account.allENIs()
	nobody := driver.Interface{ID: account.unknownID("eni"), Instance: account.self.Instance}
	for _, on := range []driver.Interface{gone, nobody} {
		_, err := account.assignCount(on, account.has[0], driver.Count{Singles: 1})
		account.checkReason(err, cloud.NoSuchInterface)
	}
	account.checkUnchanged(before)
}

func putsOnce(account *account) {
	on, family := account.readyENI(), account.has[0]
	w := driver.Assign{On: on, Family: family, Count: driver.Count{Singles: 2}, Token: account.newMark().Token}
	before := account.singlesOf(on.ID, family)
	for range 2 {
		_, err := account.Assign(account.ctx, w)
		account.must(err)
	}
	if fresh := without(account.singlesOf(on.ID, family), before); len(fresh) != 2 {
		account.Errorf("two calls with one token put %v", fresh)
	}
	w.Token = account.newMark().Token
	_, err := account.Assign(account.ctx, w)
	account.must(err)
	if fresh := without(account.singlesOf(on.ID, family), before); len(fresh) != 4 {
		account.Errorf("a call with another token left %v", fresh)
	}
}

// areBlocks fails the test unless pods can have the prefixes.
func (a *account) areBlocks(blocks ...netip.Prefix) {
	a.Helper()
	for _, b := range blocks {
		bits := a.traits.Bits4
		if b.Addr().Is6() {
			bits = a.traits.Bits6
		}
		if b.Bits() != bits || b != b.Masked() || !a.mayHave(b.Addr()) {
			a.Errorf("in subnet %+v there is a block %s, want a /%d", a.in, b, bits)
		}
	}
}

// withBlocks is an ENI with n blocks of IPv4 addresses.
func (a *account) withBlocks(n int) (driver.Interface, []netip.Prefix) {
	a.Helper()
	if !a.shape.Prefixes {
		a.Skip("the instance takes no prefixes")
	}
	on := a.readyENI()
	got, err := a.assignCount(on, eni.IPv4, driver.Count{Blocks: n})
	a.must(err)
	now := a.settledENI(on.ID)
	if len(now.Blocks) != n || len(without(now.Blocks, got.Blocks)) > 0 || len(got.Addresses) > 0 {
		a.Fatalf("Assign of %d blocks returned %+v and put %v", n, got, now.Blocks)
	}
	return now, now.Blocks
}

func putsBlocks(account *account) {
	now, blocks := account.withBlocks(2)
	account.areBlocks(blocks...)
	if d := without(now.Singles, account.singlesOf(now.ID, eni.IPv6)); len(d) > 0 {
		account.Errorf("beside blocks the ENI has %v", d)
	}
}

func putsNoBlock(account *account) {
	if !account.shape.Prefixes {
		account.Skip("the instance takes no prefixes")
	}
	on := account.readyENI()
	account.s.Break(account.in.ID)
	before := account.allENIs()
	_, err := account.assignCount(on, eni.IPv4, driver.Count{Blocks: 1})
	account.checkKind(err, cloud.ErrSubnetFull)
	account.checkReason(err, cloud.NoWholeBlock)
	account.checkUnchanged(before)
	account.assignSingles(on, eni.IPv4, 1)
}

func takesAddresses(account *account) {
	on := account.readyENI()
	for _, f := range account.has {
		before := account.singlesOf(on.ID, f)
		some := account.assignSingles(on, f, 3)
		account.must(account.unassignFrom(on, f, some[2], some[0])) // in no order
		account.checkCarries(on.ID, f, append(before, some[1]))
	}
}

func takesBlocks(account *account) {
	on, blocks := account.withBlocks(2)
	account.must(account.Unassign(account.ctx, driver.Unassign{On: on, Family: eni.IPv4, Blocks: blocks[:1], Token: account.newMark().Token}))
	if got := account.settledENI(on.ID).Blocks; !slices.Equal(got, blocks[1:]) {
		account.Errorf("without %s of %v the ENI has %v", blocks[0], blocks, got)
	}
}

func takesWhatIsNot(account *account) {
	on := account.readyENI()
	for _, f := range account.has {
		some := account.assignSingles(on, f, 2)
		account.must(account.unassignFrom(on, f, some[0]))
		before := account.allENIs()
		for _, lacks := range [][]netip.Addr{{some[0]}, {some[1], some[0]}, {some[0], some[1]}} {
			account.checkReason(account.unassignFrom(on, f, lacks...), cloud.NoSuchAddress)
			account.checkUnchanged(before)
		}
	}
}

func takesBlocksThatAreNot(account *account) {
	on, blocks := account.withBlocks(2)
	take := func(blocks ...netip.Prefix) error {
		return account.Unassign(account.ctx, driver.Unassign{On: on, Family: eni.IPv4, Blocks: blocks, Token: account.newMark().Token})
	}
	account.must(take(blocks[0]))
	before := account.allENIs()
	account.checkReason(take(blocks[0]), cloud.NoSuchAddress)
	account.checkReason(take(blocks[1], blocks[0]), cloud.NoSuchAddress)
	account.checkUnchanged(before)
}

func takesFromNobody(account *account) {
	on, f := account.readyENI(), account.has[0]
	some := account.assignSingles(on, f, 1)
	before := account.allENIs()
	nobody := driver.Interface{ID: account.unknownID("eni"), Instance: account.self.Instance}
	account.checkReason(account.unassignFrom(nobody, f, some...), cloud.NoSuchInterface)
	account.checkUnchanged(before)
}
