package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

func exactOtherSubnet(r *region) {
	on, free := r.exact()
	if r.Region.Does().CrossSubnet {
		r.Skip("an ENI takes addresses of other subnets")
	}
	_, err := r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, free[:1], cloud.Origin{Subnet: on.Subnet + "x"})
	r.is(err, cloud.ErrForbidden)
	r.has(on.ID, nil, free)
	_, err = r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, free[:1], cloud.Origin{Subnet: on.Subnet, ENI: on.ID})
	r.must(err)
	r.has(on.ID, free[:1], nil)
}

// elsewhere is an address of the second subnet that is free: an ENI there had it until now.
func (r *region) elsewhere() netip.Addr {
	r.Helper()
	if len(r.Subnets) < 2 || r.spare() < 1 {
		r.Skip("there is no ENI in another subnet")
	}
	w := r.want(0)
	w.Subnet = r.Subnets[1]
	there, err := r.Cloud.CreateInterface(r.ctx, w)
	r.must(err)
	some := r.singly(there.ID, 2)
	r.must(r.Cloud.UnassignAddresses(r.ctx, there.ID, some))
	r.settle()
	return some[1]
}

func exactCrossSubnet(r *region) {
	if !r.Region.Does().CrossSubnet {
		r.Skip("an ENI takes addresses of its own subnet alone")
	}
	on, own := r.exact()
	theirs := r.elsewhere()
	from := cloud.Origin{Subnet: r.Subnets[1]}
	_, err := r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, []netip.Addr{theirs, own[0]}, from)
	r.is(err, cloud.ErrForbidden)
	r.hasOfOthers(on.ID)
	for range 2 { // to ask again is safe
		got, err := r.Region.AssignExactly(r.ctx, r.Instances[0], on.ID, []netip.Addr{theirs}, from)
		r.must(err)
		if !slices.Equal(got, []netip.Addr{theirs}) {
			r.Errorf("AssignExactly of %s returned %v", theirs, got)
		}
		r.hasOfOthers(on.ID, theirs) // at once
		r.settle()
		r.hasOfOthers(on.ID, theirs)
	}
	r.has(on.ID, nil, []netip.Addr{theirs, own[0]})
	r.must(r.Cloud.UnassignAddresses(r.ctx, on.ID, []netip.Addr{theirs}))
	r.hasOfOthers(on.ID)
	r.settle()
	r.hasOfOthers(on.ID)
	if q, can := r.Cloud.(cloud.Quarantiner); can && len(q.Quarantined()) > 0 {
		r.Errorf("of the ENIs %+v are left out", q.Quarantined())
	}
}

// hasOfOthers fails the test unless the ENI has exactly these addresses of other subnets.
func (r *region) hasOfOthers(id string, want ...netip.Addr) {
	r.Helper()
	list, err := r.Cloud.Interfaces(r.ctx)
	r.must(err)
	at := slices.IndexFunc(list, func(i cloud.Interface) bool { return i.ID == id })
	if at < 0 || !slices.Equal(list[at].CrossSubnet, want) || slices.ContainsFunc(want, func(a netip.Addr) bool { return slices.Contains(list[at].Addresses, a) }) {
		r.Errorf("of ENIs %+v %s has other addresses of other subnets than %v", list, id, want)
	}
}
