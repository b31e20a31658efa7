package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// movableAddresses is an ENI, one of another instance, and what of two free addresses each has: the
// first one that of the other instance, and no one has the second.
func (r *region) movableAddresses() (on, other cloud.Interface, addrs []netip.Addr) {
	r.Helper()
	on, free := r.eniWithFree()
	if r.firstFamily() != eni.IPv4 {
		r.Skip("addresses of IPv4 alone move")
	}
	other = r.other.eniWith(0)
	_, err := r.assignExactly(r.Instances[1], other.ID, free[0])
	r.must(err)
	r.waitForLag()
	return on, other, free
}

// otherHas fails the test unless the other instance's ENI has these addresses, and others not.
func (r *region) otherHas(id string, want, not []netip.Addr) {
	r.Helper()
	i, _ := r.other.findENI(id)
	if len(withoutAddrs(want, i.Addresses...)) > 0 || len(withoutAddrs(not, i.Addresses...)) < len(not) {
		r.Errorf("the other ENI %s has %v, want %v and not %v", id, i.Addresses, want, not)
	}
}

func exactMoves(region *region) {
	on, other, addrs := region.movableAddresses()
	if !region.Region.Does().Moves {
		region.Skip("the cloud moves no addresses")
	}
	for range 2 { // to ask again is safe
		got, err := region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, addrs, cloud.Origin{Subnet: on.Subnet, ENI: other.ID})
		region.must(err)
		if !slices.Equal(got, union(addrs)) {
			region.Errorf("AssignExactly of %v returned %v", addrs, got)
		}
	}
	// At once: what the other one has lost is known without asking.
	if left := region.Region.Node(cloud.Instance{ID: region.Instances[1]}).Known(); slices.ContainsFunc(left, func(i cloud.Interface) bool { return slices.Contains(i.Addresses, addrs[0]) }) {
		region.Errorf("%s has moved, and its old Node still knows it: %+v", addrs[0], left)
	}
	region.checkHas(on.ID, addrs, nil)
	region.otherHas(other.ID, nil, addrs)
}

func exactMovesNoOther(region *region) {
	on, other, addrs := region.movableAddresses()
	if !region.Region.Does().Moves {
		region.Skip("the cloud moves no addresses")
	}
	own := region.settledENIs()[0].ID // which has none of them
	got, err := region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, addrs[:1], cloud.Origin{ENI: own})
	region.checkKind(err, cloud.ErrTaken)
	if len(got) > 0 {
		region.Errorf("AssignExactly of %s returned %v", addrs[0], got)
	}
	_, err = region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, []netip.Addr{other.V4.Primary.Addr()}, cloud.Origin{ENI: other.ID})
	region.checkKind(err, cloud.ErrTaken)
	region.checkHas(on.ID, nil, addrs)
	region.otherHas(other.ID, addrs[:1], nil)
}

func exactMovesNever(region *region) {
	on, other, addrs := region.movableAddresses()
	if region.Region.Does().Moves {
		region.Skip("the cloud moves addresses")
	}
	_, err := region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, addrs[:1], cloud.Origin{ENI: other.ID})
	region.checkKind(err, cloud.ErrForbidden)
	region.checkHas(on.ID, nil, addrs)
	region.otherHas(other.ID, addrs[:1], nil)
}
