package drivertest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// exact is what the comment of Assign says of addresses by name.
var exact = []sentence{
	{"Exact: Assign puts the addresses that it names", []need{takesNames}, putsByName},
	{"Exact: Assign of an address that another ENI has is refused, AddressTaken, and none is put", []need{takesNames, severalNICs}, putsNoneTaken},
	{"Exact: Assign of an address out of the subnet is refused, and none is put", []need{takesNames}, putsNoneOutside},
	{"Moves: Assign takes the addresses that it names from another ENI, if it is told to", []need{movesAddresses, severalNICs}, putsTaken},
	{"Moves: Assign of the primary address of another ENI is refused, AddressTaken", []need{movesAddresses, severalNICs}, putsNoPrimary},
	{"CrossSubnet: Assign puts the addresses of another subnet that it names, and Unassign takes them", []need{crossesSubnets, severalNICs, hasTwoSubnets}, putsOfOther},
}

func crossesSubnets(_ Subject, t driver.Traits) string {
	return reasonUnless(t.CrossSubnet, "Assign takes no addresses of another subnet")
}

func hasTwoSubnets(s Subject, _ driver.Traits) string {
	return reasonUnless(len(s.Subnets) > 1, "the endpoint lacks a second subnet")
}

func putsOfOther(account *account) {
	on := account.readyENI()
	asked := account.newCreate()
	asked.Subnet = account.s.Subnets[1]
	there := account.attachTo(account.createLoose(asked).ID, account.self.Instance)
	for _, family := range account.has {
		has, free := account.singlesOf(on.ID, family), account.freeAddresses(there, family, 2)
		before := account.settledSubnet(asked.Subnet).Free
		_, err := account.byName(on, family, free[0])
		account.checkKind(err, cloud.ErrForbidden) // it is not said that it is another's
		for _, one := range free {
			_, err = account.Assign(account.ctx, driver.Assign{On: on, Family: family, Addresses: []netip.Addr{one}, Subnet: asked.Subnet, Token: account.newMark().Token})
			account.must(err)
		}
		account.checkCarries(on.ID, family, append(slices.Clone(has), free...))
		_, err = account.byName(there, family, free[0])
		account.checkReason(err, cloud.AddressTaken)
		if is := account.settledSubnet(asked.Subnet).Free; family == eni.IPv4 && is != before-len(free) {
			account.Errorf("subnet %s has room for %d, and had for %d before it lent %v", asked.Subnet, is, before, free)
		}
		account.must(account.unassignFrom(on, family, free...))
		account.checkCarries(on.ID, family, has)
	}
}

func movesAddresses(_ Subject, t driver.Traits) string {
	return reasonUnless(t.Moves, "Assign takes nothing from other ENIs")
}

func putsTaken(account *account) {
	on, other := account.readyENI(), account.readyENI()
	theirs := account.assignSingles(other, eni.IPv4, 2)
	has, free := account.singlesOf(on.ID, eni.IPv4), account.freeAddresses(on, eni.IPv4, 1)
	kept := without(account.singlesOf(other.ID, eni.IPv4), theirs[:1])
	want := []netip.Addr{theirs[0], free[0]}
	got, err := account.Assign(account.ctx, driver.Assign{On: on, Family: eni.IPv4, Addresses: want, Take: true, Token: account.newMark().Token})
	account.must(err)
	if len(without(want, got.Addresses)) > 0 {
		account.Errorf("Assign of %v returned %+v", want, got)
	}
	account.checkCarries(on.ID, eni.IPv4, append(has, want...))
	account.checkCarries(other.ID, eni.IPv4, kept)
}

func putsNoPrimary(account *account) {
	on, other := account.readyENI(), account.readyENI()
	if !slices.Contains(account.has, eni.IPv4) {
		return
	}
	before := account.allENIs()
	_, err := account.Assign(account.ctx, driver.Assign{On: on, Family: eni.IPv4, Addresses: []netip.Addr{other.V4}, Take: true, Token: account.newMark().Token})
	account.checkReason(err, cloud.AddressTaken)
	account.checkUnchanged(before)
}

// byName is Assign of these addresses to the ENI, with a token of its own.
func (a *account) byName(on driver.Interface, f eni.Family, addrs ...netip.Addr) (driver.Assigned, error) {
	return a.Assign(a.ctx, driver.Assign{On: on, Family: f, Addresses: addrs, Token: a.newMark().Token})
}

// freeAddresses returns n addresses that nobody has: the cloud has just assigned and unassigned them.
// It has also unassigned a lower one, so that an assignment by count would not begin with them.
func (a *account) freeAddresses(on driver.Interface, f eni.Family, n int) []netip.Addr {
	a.Helper()
	some := a.assignSingles(on, f, n+1)
	a.must(a.unassignFrom(on, f, some...))
	a.waitForLag()
	return some[1:]
}

func putsByName(account *account) {
	on := account.readyENI()
	for _, f := range account.has {
		before := account.singlesOf(on.ID, f)
		want := account.freeAddresses(on, f, 2)
		slices.Reverse(want)
		got, err := account.byName(on, f, want...)
		account.must(err)
		if len(without(want, got.Addresses)) > 0 || len(got.Blocks) > 0 {
			account.Errorf("Assign of %v returned %+v", want, got)
		}
		account.checkCarries(on.ID, f, append(before, want...))
	}
}

func putsNoneTaken(account *account) {
	on, other := account.readyENI(), account.readyENI()
	for _, f := range account.has {
		free := account.freeAddresses(on, f, 1)
		before := account.allENIs()
		taken := account.assignSingles(other, f, 1)
		_, err := account.byName(on, f, free[0], taken[0])
		account.checkReason(err, cloud.AddressTaken)
		account.must(account.unassignFrom(other, f, taken...))
		account.checkUnchanged(before)
	}
	if slices.Contains(account.has, eni.IPv4) {
		before := account.allENIs()
		_, err := account.byName(on, eni.IPv4, other.V4)
		account.checkReason(err, cloud.AddressTaken)
		account.checkUnchanged(before)
	}
}

// putsNoneOutside names the address before the subnet's first.
func putsNoneOutside(account *account) {
	on := account.readyENI()
	for _, family := range account.has {
		in := account.in.V4
		if family == eni.IPv6 {
			in = account.in.V6
		}
		for _, p := range account.in.Pods {
			if eni.FamilyOf(p.Addr()) == family {
				in = p
			}
		}
		before := account.allENIs()
		_, err := account.byName(on, family, in.Masked().Addr().Prev())
		account.checkKind(err, cloud.ErrForbidden)
		account.checkUnchanged(before)
	}
}
