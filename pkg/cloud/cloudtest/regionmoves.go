package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// movable is an ENI, one of another instance, and what of two free addresses each has: the
// first one that of the other instance, and no one has the second.
func (r *region) movable() (on, other cloud.Interface, addrs []netip.Addr) {
	r.Helper()
	on, free := r.exact()
	if r.family() != eni.IPv4 {
		r.Skip("addresses of IPv4 alone move")
	}
	other = r.other.carrier(0)
	_, err := r.assignExactly(r.Instances[1], other.ID, free[0])
	r.must(err)
	r.settle()
	return on, other, free
}

// otherHas fails the test unless the other instance's ENI has these addresses, and others not.
func (r *region) otherHas(id string, want, not []netip.Addr) {
	r.Helper()
	i, _ := r.other.eni(id)
	if len(withoutAddrs(want, i.Addresses...)) > 0 || len(withoutAddrs(not, i.Addresses...)) < len(not) {
		r.Errorf("the other ENI %s has %v, want %v and not %v", id, i.Addresses, want, not)
	}
}

func exactMoves(r *region) {
	on, other, addrs := r.movable()
	if !r.Region.Does().Moves {
		r.Skip("the cloud moves no addresses")
	}
	for range 2 { // to ask again is safe
		got, err := r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, addrs, cloud.Origin{Subnet: on.Subnet, ENI: other.ID})
		r.must(err)
		if !slices.Equal(got, with(addrs)) {
			r.Errorf("AssignExactly of %v returned %v", addrs, got)
		}
	}
	// At once: what the other one has lost is known without asking.
	if left := r.Region.Node(cloud.Instance{ID: r.Instances[1]}).Known(); slices.ContainsFunc(left, func(i cloud.Interface) bool { return slices.Contains(i.Addresses, addrs[0]) }) {
		r.Errorf("%s has moved, and its old Node still knows it: %+v", addrs[0], left)
	}
	r.has(on.ID, addrs, nil)
	r.otherHas(other.ID, nil, addrs)
}

func exactMovesNoOther(r *region) {
	on, other, addrs := r.movable()
	if !r.Region.Does().Moves {
		r.Skip("the cloud moves no addresses")
	}
	own := r.see()[0].ID // which has none of them
	got, err := r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, addrs[:1], cloud.Origin{ENI: own})
	r.is(err, cloud.ErrTaken)
	if len(got) > 0 {
		r.Errorf("AssignExactly of %s returned %v", addrs[0], got)
	}
	_, err = r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, []netip.Addr{other.V4.Primary.Addr()}, cloud.Origin{ENI: other.ID})
	r.is(err, cloud.ErrTaken)
	r.has(on.ID, nil, addrs)
	r.otherHas(other.ID, addrs[:1], nil)
}

func exactMovesNever(r *region) {
	on, other, addrs := r.movable()
	if r.Region.Does().Moves {
		r.Skip("the cloud moves addresses")
	}
	_, err := r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, addrs[:1], cloud.Origin{ENI: other.ID})
	r.is(err, cloud.ErrForbidden)
	r.has(on.ID, nil, addrs)
	r.otherHas(other.ID, addrs[:1], nil)
}
