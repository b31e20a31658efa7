package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// reservableRange returns an ENI, a free address for it, and a range of two that has that address. It
// skips the test if the cloud keeps no ranges.
func (r *region) reservableRange() (on cloud.Interface, free netip.Addr, in netip.Prefix) {
	r.Helper()
	if !r.Region.Does().Keeps {
		r.Skip("the cloud keeps no ranges for addresses by name")
	}
	on, some := r.eniWithFree()
	return on, some[0], netip.PrefixFrom(some[0], some[0].BitLen()-1).Masked()
}

// checkReserved fails the test unless exactly these ranges are reserved, all of them by this cluster.
func (r *region) checkReserved(on cloud.Interface, want ...netip.Prefix) {
	r.Helper()
	list, err := r.Region.Reserved(r.ctx, on.Subnet)
	r.must(err)
	ok := len(list) == len(want)
	for at, is := range list {
		ok = ok && is.ID != "" && is == cloud.Reservation{ID: is.ID, Range: want[at], Ours: true}
	}
	if !ok {
		r.Errorf("%+v are reserved, want %v of ours", list, want)
	}
}

func reservesForNames(region *region) {
	on, free, in := region.reservableRange()
	for range 2 { // to ask again is safe
		region.must(region.Region.Reserve(region.ctx, on.Subnet, in))
		region.checkReserved(on, in)
	}
	some := region.assignSingly(on.ID, 2)
	if slices.ContainsFunc(some, in.Contains) {
		region.Errorf("%v are given out, and %s is reserved", some, in)
	}
	region.must(region.Cloud.UnassignAddresses(region.ctx, on.ID, some))
	_, err := region.assignExactly(region.Instances[0], on.ID, free)
	region.must(err)
	region.checkHas(on.ID, []netip.Addr{free}, some)
}

func reservesOnce(region *region) {
	on, free, in := region.reservableRange()
	region.must(region.Region.Reserve(region.ctx, on.Subnet, in))
	region.checkKind(region.Region.Reserve(region.ctx, on.Subnet, netip.PrefixFrom(free, free.BitLen())), cloud.ErrTaken)
	region.checkReserved(on, in)
}

func reservesNoneOutside(region *region) {
	on, free, in := region.reservableRange()
	before := on.Net(region.firstFamily()).Primary.Masked().Addr().Prev()
	odd := in.Addr().Next() // a range begins at no such address
	for _, bad := range []netip.Prefix{netip.PrefixFrom(before, before.BitLen()), netip.PrefixFrom(odd, in.Bits()), {}} {
		region.checkKind(region.Region.Reserve(region.ctx, on.Subnet, bad), cloud.ErrForbidden)
	}
	region.checkReserved(on)
	_, err := region.assignExactly(region.Instances[0], on.ID, free)
	region.must(err)
}

func endsReservation(region *region) {
	on, free, in := region.reservableRange()
	region.must(region.Region.Unreserve(region.ctx, on.Subnet, in)) // it is not reserved
	region.must(region.Region.Reserve(region.ctx, on.Subnet, in))
	_, err := region.assignExactly(region.Instances[0], on.ID, free)
	region.must(err)
	for range 2 {
		region.must(region.Region.Unreserve(region.ctx, on.Subnet, in))
		region.checkReserved(on)
	}
	region.checkHas(on.ID, []netip.Addr{free}, nil)
	region.must(region.Region.Reserve(region.ctx, on.Subnet, in)) // though somebody has a part of it
	region.checkReserved(on, in)
}

func reservesNever(region *region) {
	if region.Region.Does().Keeps {
		region.Skip("the cloud keeps ranges for addresses by name")
	}
	on := region.settledENIs()[0]
	in := netip.PrefixFrom(on.Net(region.firstFamily()).Primary.Addr(), 32).Masked()
	region.checkKind(region.Region.Reserve(region.ctx, on.Subnet, in), cloud.ErrForbidden)
	region.checkKind(region.Region.Unreserve(region.ctx, on.Subnet, in), cloud.ErrForbidden)
	_, err := region.Region.Reserved(region.ctx, on.Subnet)
	region.checkKind(err, cloud.ErrForbidden)
}
