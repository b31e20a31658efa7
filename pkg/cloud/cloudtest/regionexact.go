package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// eniWithFree returns an ENI, and free addresses for it, which it had until now.
func (r *region) eniWithFree() (on cloud.Interface, free []netip.Addr) {
	r.Helper()
	if !r.Region.Does().Exact {
		r.Skip("the cloud takes no addresses by name")
	}
	on = r.eniWith(0)
	units := r.assignSingly(on.ID, 3)
	r.must(r.Cloud.UnassignAddresses(r.ctx, on.ID, units))
	r.waitForLag()
	return on, units[1:]
}

// assignSingly puts n addresses of the first family on the ENI, one per call. It skips the test if
// they come in blocks.
func (r *region) assignSingly(id string, n int) []netip.Addr {
	r.Helper()
	if r.unitSize(r.firstFamily()) > 1 && r.firstFamily() == eni.IPv6 {
		r.Skip("addresses come in blocks")
	}
	var addrs []netip.Addr
	for len(addrs) < n {
		got, err := r.Cloud.AssignAddresses(r.ctx, id, r.firstFamily(), 1)
		r.must(err)
		addrs = append(addrs, got...)
	}
	return addrs
}

// checkHas fails the test unless the ENI has the addresses of want and none of not.
func (r *region) checkHas(id string, want, not []netip.Addr) {
	r.Helper()
	i, _ := r.findENI(id)
	if len(withoutAddrs(want, i.Addresses...)) > 0 || len(withoutAddrs(not, i.Addresses...)) < len(not) {
		r.Errorf("ENI %s has %v, want %v and not %v", id, i.Addresses, want, not)
	}
}

func (r *region) assignExactly(instance, id string, addrs ...netip.Addr) ([]netip.Addr, error) {
	return r.Region.AssignExactly(r.ctx, instance, id, addrs, cloud.Origin{})
}

func exactAddresses(region *region) {
	on, free := region.eniWithFree()
	got, err := region.assignExactly(region.Instances[0], on.ID, free...)
	region.must(err)
	if !slices.Equal(got, union(free)) {
		region.Errorf("AssignExactly of %v returned %v", free, got)
	}
	region.checkHas(on.ID, free, nil)
	region.must(region.Cloud.UnassignAddresses(region.ctx, on.ID, got))
	region.checkHas(on.ID, nil, free)
}

func exactAgain(region *region) {
	on, free := region.eniWithFree()
	for range 2 {
		got, err := region.assignExactly(region.Instances[0], on.ID, free[0])
		region.must(err)
		if !slices.Equal(got, free[:1]) {
			region.Errorf("AssignExactly of %s returned %v", free[0], got)
		}
	}
	got, err := region.assignExactly(region.Instances[0], on.ID, free...)
	region.must(err)
	if !slices.Equal(got, union(free)) {
		region.Errorf("AssignExactly of %v returned %v", free, got)
	}
	region.checkHas(on.ID, free, nil)
}

func exactTaken(region *region) {
	on, free := region.eniWithFree()
	iface := region.other.eniWith(0)
	theirs, err := region.Region.AssignExactly(region.ctx, region.Instances[1], iface.ID, free[:1], cloud.Origin{})
	region.must(err)
	got, err := region.assignExactly(region.Instances[0], on.ID, theirs[0])
	region.checkKind(err, cloud.ErrTaken)
	if len(got) > 0 {
		region.Errorf("AssignExactly of %s returned %v", theirs[0], got)
	}
	got, err = region.assignExactly(region.Instances[0], on.ID, free...)
	region.checkKind(err, cloud.ErrTaken)
	if !slices.Equal(got, free[1:2]) {
		region.Errorf("AssignExactly of %v, of which %s is taken, returned %v", free, theirs, got)
	}
	region.checkHas(on.ID, free[1:2], theirs)
	_, err = region.assignExactly(region.Instances[0], on.ID, iface.Net(region.firstFamily()).Primary.Addr())
	region.checkKind(err, cloud.ErrTaken)
	_, err = region.assignExactly(region.Instances[0], on.ID, on.Net(region.firstFamily()).Primary.Addr())
	region.checkKind(err, cloud.ErrTaken)
}

func exactOutside(region *region) {
	on, free := region.eniWithFree()
	before := region.settledENIs()
	in := on.Net(region.firstFamily()).Primary.Masked()
	for _, outside := range []netip.Addr{in.Addr().Prev(), in.Addr(), on.Net(region.firstFamily()).Gateway, {}} {
		got, err := region.assignExactly(region.Instances[0], on.ID, outside, free[0])
		region.checkKind(err, cloud.ErrForbidden)
		if len(got) > 0 {
			region.Errorf("AssignExactly of %s returned %v", outside, got)
		}
	}
	region.checkUnchanged(before)
}

func exactElsewhere(region *region) {
	on, free := region.eniWithFree()
	before := region.settledENIs()
	_, err := region.Region.AssignExactly(region.ctx, region.Instances[1], on.ID, free, cloud.Origin{})
	region.checkKind(err, cloud.ErrNotFound)
	_, err = region.Region.AssignExactly(region.ctx, region.Nobody, on.ID, free, cloud.Origin{})
	region.checkKind(err, cloud.ErrNotFound)
	region.checkUnchanged(before)
}

func exactNever(region *region) {
	if region.Region.Does().Exact {
		region.Skip("the cloud takes addresses by name")
	}
	on := region.settledENIs()[0]
	_, err := region.assignExactly(region.Instances[0], on.ID, on.Net(region.firstFamily()).Primary.Addr().Next())
	region.checkKind(err, cloud.ErrForbidden)
}
