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
	{"Moves: Assign takes the addresses that it names from another ENI, if it is told to", []need{moves, severalNICs}, putsTaken},
	{"Moves: Assign of the primary address of another ENI is refused, AddressTaken", []need{moves, severalNICs}, putsNoPrimary},
	{"CrossSubnet: Assign puts the addresses of another subnet that it names, and Unassign takes them", []need{crosses, severalNICs, hasTwoSubnets}, putsOfOther},
}

func crosses(_ Subject, t driver.Traits) string {
	return unless(t.CrossSubnet, "Assign takes no addresses of another subnet")
}

func hasTwoSubnets(s Subject, _ driver.Traits) string {
	return unless(len(s.Subnets) > 1, "the endpoint lacks a second subnet")
}

func putsOfOther(a *account) {
	on := a.ready()
	w := a.wish()
	w.Subnet = a.s.Subnets[1]
	there := a.attachTo(a.make(w).ID, a.self.Instance)
	for _, f := range a.has {
		has, free := a.addresses(on.ID, f), a.free(there, f, 2)
		before := a.subnet(w.Subnet).Free
		_, err := a.byName(on, f, free[0])
		a.is(err, cloud.ErrForbidden) // it is not said that it is another's
		_, err = a.Assign(a.ctx, driver.Assign{On: on, Family: f, Addresses: free, Subnet: w.Subnet, Token: a.mark().Token})
		a.must(err)
		a.carries(on.ID, f, append(slices.Clone(has), free...))
		_, err = a.byName(there, f, free[0])
		a.because(err, driver.AddressTaken)
		if is := a.subnet(w.Subnet).Free; f == eni.IPv4 && is != before-len(free) {
			a.Errorf("subnet %s has room for %d, and had for %d before it lent %v", w.Subnet, is, before, free)
		}
		a.must(a.unassign(on, f, free...))
		a.carries(on.ID, f, has)
	}
}

func moves(_ Subject, t driver.Traits) string {
	return unless(t.Moves, "Assign takes nothing from other ENIs")
}

func putsTaken(a *account) {
	on, other := a.ready(), a.ready()
	theirs := a.put(other, eni.IPv4, 2)
	has, free := a.addresses(on.ID, eni.IPv4), a.free(on, eni.IPv4, 1)
	kept := without(a.addresses(other.ID, eni.IPv4), theirs[:1])
	want := []netip.Addr{theirs[0], free[0]}
	got, err := a.Assign(a.ctx, driver.Assign{On: on, Family: eni.IPv4, Addresses: want, Take: true, Token: a.mark().Token})
	a.must(err)
	if len(without(want, got.Addresses)) > 0 {
		a.Errorf("Assign of %v returned %+v", want, got)
	}
	a.carries(on.ID, eni.IPv4, append(has, want...))
	a.carries(other.ID, eni.IPv4, kept)
}

func putsNoPrimary(a *account) {
	on, other := a.ready(), a.ready()
	if !slices.Contains(a.has, eni.IPv4) {
		return
	}
	before := a.all()
	_, err := a.Assign(a.ctx, driver.Assign{On: on, Family: eni.IPv4, Addresses: []netip.Addr{other.V4}, Take: true, Token: a.mark().Token})
	a.because(err, driver.AddressTaken)
	a.unchanged(before)
}

// byName is Assign of these addresses to the ENI, with a token of its own.
func (a *account) byName(on driver.Interface, f eni.Family, addrs ...netip.Addr) (driver.Assigned, error) {
	return a.Assign(a.ctx, driver.Assign{On: on, Family: f, Addresses: addrs, Token: a.mark().Token})
}

// free are addresses that nobody has: the cloud has just given them out, and got them back.
// They are not those that it would give out next.
func (a *account) free(on driver.Interface, f eni.Family, n int) []netip.Addr {
	a.Helper()
	some := a.put(on, f, n+1)
	a.must(a.unassign(on, f, some...))
	a.settle()
	return some[1:]
}

func putsByName(a *account) {
	on := a.ready()
	for _, f := range a.has {
		before := a.addresses(on.ID, f)
		want := a.free(on, f, 2)
		slices.Reverse(want)
		got, err := a.byName(on, f, want...)
		a.must(err)
		if len(without(want, got.Addresses)) > 0 || len(got.Blocks) > 0 {
			a.Errorf("Assign of %v returned %+v", want, got)
		}
		a.carries(on.ID, f, append(before, want...))
	}
}

func putsNoneTaken(a *account) {
	on, other := a.ready(), a.ready()
	for _, f := range a.has {
		free := a.free(on, f, 1)
		before := a.all()
		taken := a.put(other, f, 1)
		_, err := a.byName(on, f, free[0], taken[0])
		a.because(err, driver.AddressTaken)
		a.must(a.unassign(other, f, taken...))
		a.unchanged(before)
	}
	if slices.Contains(a.has, eni.IPv4) {
		before := a.all()
		_, err := a.byName(on, eni.IPv4, other.V4)
		a.because(err, driver.AddressTaken)
		a.unchanged(before)
	}
}

// putsNoneOutside names the address before the subnet's first.
func putsNoneOutside(a *account) {
	on := a.ready()
	for _, f := range a.has {
		in := a.in.V4
		if f == eni.IPv6 {
			in = a.in.V6
		}
		for _, p := range a.in.Pods {
			if eni.FamilyOf(p.Addr()) == f {
				in = p
			}
		}
		before := a.all()
		_, err := a.byName(on, f, in.Masked().Addr().Prev())
		a.is(err, cloud.ErrForbidden)
		a.unchanged(before)
	}
}
