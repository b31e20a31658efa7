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
	{"Assign puts blocks of Bits4", []need{blocks4}, putsBlocks},
	{"Assign of a block from a subnet without one is refused: NoWholeBlock", []need{blocks4, canBreak}, putsNoBlock},
}

// unassigns is what the comments of Unassign say.
var unassigns = []sentence{
	{"Unassign takes addresses from the ENI", nil, takes},
	{"Unassign takes blocks from the ENI", []need{blocks4}, takesBlocks},
	{"Unassign of an address that the ENI lacks is refused, NoSuchAddress, and nothing happens", nil, takesWhatIsNot},
	{"Unassign of a block that the ENI lacks is refused, NoSuchAddress, and nothing happens", []need{blocks4}, takesBlocksThatAreNot},
	{"Unassign from an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, takesFromNobody},
}

func ofFamily(list []netip.Addr, f eni.Family) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(list), func(x netip.Addr) bool { return eni.FamilyOf(x) != f })
}

func sorted(list []netip.Addr) []netip.Addr {
	return slices.SortedFunc(slices.Values(list), netip.Addr.Compare)
}

func sortedText(list []string) []string { return slices.Sorted(slices.Values(list)) }

// texts are addresses in an order, to be compared.
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

// assign is Assign of count to the ENI, with a token of its own.
func (a *account) assign(on driver.Interface, f eni.Family, count driver.Count) (driver.Assigned, error) {
	return a.Assign(a.ctx, driver.Assign{On: on, Family: f, Count: count, Token: a.mark().Token})
}

// unassign is Unassign of single addresses of the ENI.
func (a *account) unassign(on driver.Interface, f eni.Family, addrs ...netip.Addr) error {
	return a.Unassign(a.ctx, driver.Unassign{On: on, Family: f, Addresses: addrs, Token: a.mark().Token})
}

// carries fails the test unless the ENI has exactly these further addresses of a family.
func (a *account) carries(id string, f eni.Family, want []netip.Addr) {
	a.Helper()
	if got := a.addresses(id, f); !slices.Equal(got, sorted(want)) {
		a.Fatalf("ENI %s has %s addresses %v, want %v", id, f, got, sorted(want))
	}
}

func putsAndReturns(a *account) {
	on := a.ready()
	for _, f := range a.has {
		before := a.addresses(on.ID, f)
		got, err := a.assign(on, f, driver.Count{Singles: 2})
		a.must(err)
		fresh := without(a.addresses(on.ID, f), before)
		if len(fresh) != 2 || len(without(fresh, got.Addresses)) > 0 || len(got.Blocks) > 0 {
			a.Errorf("Assign of 2 returned %+v and put %v", got, fresh)
		}
		if more := without(got.Addresses, append(append(fresh, before...), on.V4, on.V6)); len(more) > 0 {
			a.Errorf("Assign returned %v, which the ENI does not have", more)
		}
	}
}

func putsOfFamily(a *account) {
	on := a.ready()
	for _, f := range a.has {
		before := a.all()[on.ID]
		got, err := a.assign(on, f, driver.Count{Singles: 1})
		a.must(err)
		if len(ofFamily(got.Addresses, f)) != len(got.Addresses) || len(got.Addresses) == 0 {
			a.Errorf("Assign of %s returned %v", f, got.Addresses)
		}
		for _, x := range without(a.one(on.ID).Singles, before.Singles) {
			if eni.FamilyOf(x) != f || !a.mayHave(x) {
				a.Errorf("Assign of %s put %s in subnet %+v", f, x, a.in)
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

func putsPerCall(a *account) {
	on, f := a.ready(), a.has[0]
	most := a.room(f) - len(a.addresses(on.ID, f))
	if a.traits.PerCall > 0 {
		most = min(most, a.traits.PerCall)
	}
	some := a.put(on, f, most)
	a.must(a.unassign(on, f, some...))
	a.carries(on.ID, f, without(a.addresses(on.ID, f), some))
}

// putsAllOrNothing asks for 3 where 2 are left.
func putsAllOrNothing(a *account) {
	on, f := a.ready(), a.has[0]
	a.s.Leave(a.in.ID, 2)
	before := a.addresses(on.ID, f)
	got, err := a.assign(on, f, driver.Count{Singles: 3})
	fresh := without(a.addresses(on.ID, f), before)
	switch {
	case err != nil:
		a.is(err, cloud.ErrSubnetFull)
		if len(fresh) > 0 {
			a.Errorf("Assign was refused and put %v", fresh)
		}
	case a.traits.AllOrNothing:
		a.Errorf("Assign of 3 addresses where 2 are left returned %v", got)
	case len(fresh) > 2 || len(without(fresh, got.Addresses)) > 0:
		a.Errorf("Assign of 3 addresses where 2 are left returned %v and put %v", got, fresh)
	}
	a.put(on, f, 2) // which there are, unless they came
}

func putsNothingInFull(a *account) {
	on, f := a.ready(), a.has[0]
	a.s.Leave(a.in.ID, 0)
	before := a.all()
	got, err := a.assign(on, f, driver.Count{Singles: 1})
	switch {
	case err != nil:
		a.is(err, cloud.ErrSubnetFull)
	case a.traits.AllOrNothing || len(without(got.Addresses, append(before[on.ID].Singles, on.V4, on.V6))) > 0:
		a.Errorf("Assign from a full subnet returned %v", got)
	}
	a.unchanged(before)
}

func putsNowhere(a *account) {
	gone := a.loose()
	a.must(a.Delete(a.ctx, gone.ID, a.mark().Token))
	before := a.all()
	nobody := driver.Interface{ID: a.nobody("eni"), Instance: a.self.Instance}
	for _, on := range []driver.Interface{gone, nobody} {
		_, err := a.assign(on, a.has[0], driver.Count{Singles: 1})
		a.because(err, driver.NoSuchInterface)
	}
	a.unchanged(before)
}

func putsOnce(a *account) {
	on, f := a.ready(), a.has[0]
	w := driver.Assign{On: on, Family: f, Count: driver.Count{Singles: 2}, Token: a.mark().Token}
	before := a.addresses(on.ID, f)
	for range 2 {
		_, err := a.Assign(a.ctx, w)
		a.must(err)
	}
	if fresh := without(a.addresses(on.ID, f), before); len(fresh) != 2 {
		a.Errorf("two calls with one token put %v", fresh)
	}
	w.Token = a.mark().Token
	_, err := a.Assign(a.ctx, w)
	a.must(err)
	if fresh := without(a.addresses(on.ID, f), before); len(fresh) != 4 {
		a.Errorf("a call with another token left %v", fresh)
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
	on := a.ready()
	got, err := a.assign(on, eni.IPv4, driver.Count{Blocks: n})
	a.must(err)
	now := a.one(on.ID)
	if len(now.Blocks) != n || len(without(now.Blocks, got.Blocks)) > 0 || len(got.Addresses) > 0 {
		a.Fatalf("Assign of %d blocks returned %+v and put %v", n, got, now.Blocks)
	}
	return now, now.Blocks
}

func putsBlocks(a *account) {
	now, blocks := a.withBlocks(2)
	a.areBlocks(blocks...)
	if d := without(now.Singles, a.addresses(now.ID, eni.IPv6)); len(d) > 0 {
		a.Errorf("beside blocks the ENI has %v", d)
	}
}

func putsNoBlock(a *account) {
	if !a.shape.Prefixes {
		a.Skip("the instance takes no prefixes")
	}
	on := a.ready()
	a.s.Break(a.in.ID)
	before := a.all()
	_, err := a.assign(on, eni.IPv4, driver.Count{Blocks: 1})
	a.is(err, cloud.ErrSubnetFull)
	a.because(err, driver.NoWholeBlock)
	a.unchanged(before)
	a.put(on, eni.IPv4, 1)
}

func takes(a *account) {
	on := a.ready()
	for _, f := range a.has {
		before := a.addresses(on.ID, f)
		some := a.put(on, f, 3)
		a.must(a.unassign(on, f, some[2], some[0])) // in no order
		a.carries(on.ID, f, append(before, some[1]))
	}
}

func takesBlocks(a *account) {
	on, blocks := a.withBlocks(2)
	a.must(a.Unassign(a.ctx, driver.Unassign{On: on, Family: eni.IPv4, Blocks: blocks[:1], Token: a.mark().Token}))
	if got := a.one(on.ID).Blocks; !slices.Equal(got, blocks[1:]) {
		a.Errorf("without %s of %v the ENI has %v", blocks[0], blocks, got)
	}
}

func takesWhatIsNot(a *account) {
	on := a.ready()
	for _, f := range a.has {
		some := a.put(on, f, 2)
		a.must(a.unassign(on, f, some[0]))
		before := a.all()
		for _, lacks := range [][]netip.Addr{{some[0]}, {some[1], some[0]}, {some[0], some[1]}} {
			a.because(a.unassign(on, f, lacks...), driver.NoSuchAddress)
			a.unchanged(before)
		}
	}
}

func takesBlocksThatAreNot(a *account) {
	on, blocks := a.withBlocks(2)
	take := func(blocks ...netip.Prefix) error {
		return a.Unassign(a.ctx, driver.Unassign{On: on, Family: eni.IPv4, Blocks: blocks, Token: a.mark().Token})
	}
	a.must(take(blocks[0]))
	before := a.all()
	a.because(take(blocks[0]), driver.NoSuchAddress)
	a.because(take(blocks[1], blocks[0]), driver.NoSuchAddress)
	a.unchanged(before)
}

func takesFromNobody(a *account) {
	on, f := a.ready(), a.has[0]
	some := a.put(on, f, 1)
	before := a.all()
	nobody := driver.Interface{ID: a.nobody("eni"), Instance: a.self.Instance}
	a.because(a.unassign(nobody, f, some...), driver.NoSuchInterface)
	a.unchanged(before)
}
