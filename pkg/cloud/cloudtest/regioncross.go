package cloudtest

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

func exactOtherSubnet(region *region) {
	on, free := region.eniWithFree()
	if region.Region.Does().CrossSubnet {
		region.Skip("an ENI takes addresses of other subnets")
	}
	_, err := region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, free[:1], cloud.Origin{Subnet: on.Subnet + "x"})
	region.checkKind(err, cloud.ErrForbidden)
	region.checkHas(on.ID, nil, free)
	_, err = region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, free[:1], cloud.Origin{Subnet: on.Subnet, ENI: on.ID})
	region.must(err)
	region.checkHas(on.ID, free[:1], nil)
}

// freeElsewhere returns a free address of the second subnet: an ENI there had it until now.
func (r *region) freeElsewhere() netip.Addr {
	r.Helper()
	if len(r.Subnets) < 2 || r.spareENIs() < 1 {
		r.Skip("there is no ENI in another subnet")
	}
	w := r.newCreate(0)
	w.Subnet = r.Subnets[1]
	there, err := r.Cloud.CreateInterface(r.ctx, w)
	r.must(err)
	some := r.assignSingly(there.ID, 2)
	r.must(r.Cloud.UnassignAddresses(r.ctx, there.ID, some))
	r.waitForLag()
	return some[1]
}

func exactCrossSubnet(region *region) {
	if !region.Region.Does().CrossSubnet {
		region.Skip("an ENI takes addresses of its own subnet alone")
	}
	on, own := region.eniWithFree()
	theirs := region.freeElsewhere()
	from := cloud.Origin{Subnet: region.Subnets[1]}
	_, err := region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, []netip.Addr{theirs, own[0]}, from)
	region.checkKind(err, cloud.ErrForbidden)
	region.hasOfOthers(on.ID)
	for range 2 { // to ask again is safe
		got, err := region.Region.AssignExactly(region.ctx, region.Instances[0], on.ID, []netip.Addr{theirs}, from)
		region.must(err)
		if !slices.Equal(got, []netip.Addr{theirs}) {
			region.Errorf("AssignExactly of %s returned %v", theirs, got)
		}
		region.hasOfOthers(on.ID, theirs) // at once
		region.waitForLag()
		region.hasOfOthers(on.ID, theirs)
	}
	region.checkHas(on.ID, nil, []netip.Addr{theirs, own[0]})
	region.must(region.Cloud.UnassignAddresses(region.ctx, on.ID, []netip.Addr{theirs}))
	region.hasOfOthers(on.ID)
	region.waitForLag()
	region.hasOfOthers(on.ID)
	if q, can := region.Cloud.(cloud.Quarantiner); can && len(q.Quarantined()) > 0 {
		region.Errorf("of the ENIs %+v are left out", q.Quarantined())
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
