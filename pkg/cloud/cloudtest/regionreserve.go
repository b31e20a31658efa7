package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// keeping is an ENI, an address that is free for it, and a range of two with that address. It
// skips the test where the cloud keeps no ranges.
func (r *region) keeping() (on cloud.Interface, free netip.Addr, in netip.Prefix) {
	r.Helper()
	if !r.Region.Does().Keeps {
		r.Skip("the cloud keeps no ranges for addresses by name")
	}
	on, some := r.exact()
	return on, some[0], netip.PrefixFrom(some[0], some[0].BitLen()-1).Masked()
}

// reserved fails the test unless exactly these ranges are reserved, all of them ours.
func (r *region) reserved(on cloud.Interface, want ...netip.Prefix) {
	r.Helper()
	list, err := r.Region.Reserved(r.ctx, on.Subnet)
	r.must(err)
	ok := len(list) == len(want)
	for at, is := range list {
		ok = ok && is == cloud.Reservation{Range: want[at], Ours: true}
	}
	if !ok {
		r.Errorf("%+v are reserved, want %v of ours", list, want)
	}
}

func reservesForNames(r *region) {
	on, free, in := r.keeping()
	for range 2 { // to ask again is safe
		r.must(r.Region.Reserve(r.ctx, on.Subnet, in))
		r.reserved(on, in)
	}
	some := r.singly(on.ID, 2)
	if slices.ContainsFunc(some, in.Contains) {
		r.Errorf("%v are given out, and %s is reserved", some, in)
	}
	r.must(r.Cloud.UnassignAddresses(r.ctx, on.ID, some))
	_, err := r.assignExactly(r.Instances[0], on.ID, free)
	r.must(err)
	r.has(on.ID, []netip.Addr{free}, some)
}

func reservesOnce(r *region) {
	on, free, in := r.keeping()
	r.must(r.Region.Reserve(r.ctx, on.Subnet, in))
	r.is(r.Region.Reserve(r.ctx, on.Subnet, netip.PrefixFrom(free, free.BitLen())), cloud.ErrTaken)
	r.reserved(on, in)
}

func reservesNoneOutside(r *region) {
	on, free, in := r.keeping()
	before := on.Net(r.family()).Primary.Masked().Addr().Prev()
	odd := in.Addr().Next() // a range begins at no such address
	for _, bad := range []netip.Prefix{netip.PrefixFrom(before, before.BitLen()), netip.PrefixFrom(odd, in.Bits()), {}} {
		r.is(r.Region.Reserve(r.ctx, on.Subnet, bad), cloud.ErrForbidden)
	}
	r.reserved(on)
	_, err := r.assignExactly(r.Instances[0], on.ID, free)
	r.must(err)
}

func unreserves(r *region) {
	on, free, in := r.keeping()
	r.must(r.Region.Unreserve(r.ctx, on.Subnet, in)) // it is not reserved
	r.must(r.Region.Reserve(r.ctx, on.Subnet, in))
	_, err := r.assignExactly(r.Instances[0], on.ID, free)
	r.must(err)
	for range 2 {
		r.must(r.Region.Unreserve(r.ctx, on.Subnet, in))
		r.reserved(on)
	}
	r.has(on.ID, []netip.Addr{free}, nil)
	r.must(r.Region.Reserve(r.ctx, on.Subnet, in)) // though somebody has a part of it
	r.reserved(on, in)
}

func reservesNever(r *region) {
	if r.Region.Does().Keeps {
		r.Skip("the cloud keeps ranges for addresses by name")
	}
	on := r.see()[0]
	in := netip.PrefixFrom(on.Net(r.family()).Primary.Addr(), 32).Masked()
	r.is(r.Region.Reserve(r.ctx, on.Subnet, in), cloud.ErrForbidden)
	r.is(r.Region.Unreserve(r.ctx, on.Subnet, in), cloud.ErrForbidden)
	_, err := r.Region.Reserved(r.ctx, on.Subnet)
	r.is(err, cloud.ErrForbidden)
}
