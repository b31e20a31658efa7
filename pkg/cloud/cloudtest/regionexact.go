package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// exact is an ENI, and a free address for it: one that it had until now.
func (r *region) exact() (on cloud.Interface, free []netip.Addr) {
	r.Helper()
	if !r.Region.Does().Exact {
		r.Skip("the cloud takes no addresses by name")
	}
	on = r.carrier(0)
	units := r.singly(on.ID, 3)
	r.must(r.Cloud.UnassignAddresses(r.ctx, on.ID, units))
	r.settle()
	return on, units[1:]
}

// singly puts n addresses of the first family on the ENI that come one by one, or skips.
func (r *region) singly(id string, n int) []netip.Addr {
	r.Helper()
	if r.unit(r.family()) > 1 && r.family() == eni.IPv6 {
		r.Skip("addresses come in blocks")
	}
	var addrs []netip.Addr
	for len(addrs) < n {
		got, err := r.Cloud.AssignAddresses(r.ctx, id, r.family(), 1)
		r.must(err)
		addrs = append(addrs, got...)
	}
	return addrs
}

// has fails the test unless the ENI has these addresses, and others not.
func (r *region) has(id string, want, not []netip.Addr) {
	r.Helper()
	i, _ := r.eni(id)
	if len(withoutAddrs(want, i.Addresses...)) > 0 || len(withoutAddrs(not, i.Addresses...)) < len(not) {
		r.Errorf("ENI %s has %v, want %v and not %v", id, i.Addresses, want, not)
	}
}

func (r *region) assignExactly(instance, id string, addrs ...netip.Addr) ([]netip.Addr, error) {
	return r.Region.AssignExactly(r.ctx, instance, id, addrs, cloud.Origin{})
}

func exactAddresses(r *region) {
	on, free := r.exact()
	got, err := r.assignExactly(r.Instances[0], on.ID, free...)
	r.must(err)
	if !slices.Equal(got, with(free)) {
		r.Errorf("AssignExactly of %v returned %v", free, got)
	}
	r.has(on.ID, free, nil)
	r.must(r.Cloud.UnassignAddresses(r.ctx, on.ID, got))
	r.has(on.ID, nil, free)
}

func exactAgain(r *region) {
	on, free := r.exact()
	for range 2 {
		got, err := r.assignExactly(r.Instances[0], on.ID, free[0])
		r.must(err)
		if !slices.Equal(got, free[:1]) {
			r.Errorf("AssignExactly of %s returned %v", free[0], got)
		}
	}
	got, err := r.assignExactly(r.Instances[0], on.ID, free...)
	r.must(err)
	if !slices.Equal(got, with(free)) {
		r.Errorf("AssignExactly of %v returned %v", free, got)
	}
	r.has(on.ID, free, nil)
}

func exactTaken(r *region) {
	on, free := r.exact()
	i := r.other.carrier(0)
	theirs, err := r.Region.AssignExactly(r.ctx, r.Instances[1], i.ID, free[:1], cloud.Origin{})
	r.must(err)
	got, err := r.assignExactly(r.Instances[0], on.ID, theirs[0])
	r.is(err, cloud.ErrTaken)
	if len(got) > 0 {
		r.Errorf("AssignExactly of %s returned %v", theirs[0], got)
	}
	got, err = r.assignExactly(r.Instances[0], on.ID, free...)
	r.is(err, cloud.ErrTaken)
	if !slices.Equal(got, free[1:2]) {
		r.Errorf("AssignExactly of %v, of which %s is taken, returned %v", free, theirs, got)
	}
	r.has(on.ID, free[1:2], theirs)
	_, err = r.assignExactly(r.Instances[0], on.ID, i.Net(r.family()).Primary.Addr())
	r.is(err, cloud.ErrTaken)
	_, err = r.assignExactly(r.Instances[0], on.ID, on.Net(r.family()).Primary.Addr())
	r.is(err, cloud.ErrTaken)
}

func exactOutside(r *region) {
	on, free := r.exact()
	before := r.see()
	in := on.Net(r.family()).Primary.Masked()
	for _, outside := range []netip.Addr{in.Addr().Prev(), in.Addr(), on.Net(r.family()).Gateway, {}} {
		got, err := r.assignExactly(r.Instances[0], on.ID, outside, free[0])
		r.is(err, cloud.ErrForbidden)
		if len(got) > 0 {
			r.Errorf("AssignExactly of %s returned %v", outside, got)
		}
	}
	r.unchanged(before)
}

func exactElsewhere(r *region) {
	on, free := r.exact()
	before := r.see()
	_, err := r.Region.AssignExactly(r.ctx, r.Instances[1], on.ID, free, cloud.Origin{})
	r.is(err, cloud.ErrNotFound)
	_, err = r.Region.AssignExactly(r.ctx, r.Nobody, on.ID, free, cloud.Origin{})
	r.is(err, cloud.ErrNotFound)
	r.unchanged(before)
}

func exactNever(r *region) {
	if r.Region.Does().Exact {
		r.Skip("the cloud takes addresses by name")
	}
	on := r.see()[0]
	_, err := r.assignExactly(r.Instances[0], on.ID, on.Net(r.family()).Primary.Addr().Next())
	r.is(err, cloud.ErrForbidden)
}
