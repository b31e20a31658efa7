package cloudtest

import (
	"errors"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// settledList is List after the lag, by ID.
func (r *region) settledList() map[string]cloud.Listed {
	r.Helper()
	r.waitForLag()
	all := map[string]cloud.Listed{}
	complete, err := r.Region.List(r.ctx, func(some []cloud.Listed) error {
		for _, i := range some {
			all[i.ID] = i
		}
		return nil
	})
	r.must(err)
	if !complete {
		r.Error("a list of which no page got lost is not complete")
	}
	return all
}

func listsAll(region *region) {
	region.settledLook() // which VPC it is
	region.eniWith(1)
	region.other.eniWith(2)
	if region.spareENIs() > 1 {
		region.createENI(2)
	}
	all := region.settledList()
	for at, node := range []*node{region.node, region.other} {
		for _, iface := range node.settledENIs() {
			own := iface.Index == 0
			if own && region.Region.Does().HidesPrimary {
				continue
			}
			l := all[iface.ID]
			if l.Instance != region.Instances[at] || l.Subnet != iface.Subnet || l.Primary != own || iface.Ours != (l.For == region.Instances[at]) || l.Token != iface.Token || l.Wrong != "" {
				region.Errorf("ENI %+v of %s is listed as %+v", iface, region.Instances[at], l)
			}
			if iface.Partial == nil && len(l.Blocks) == 0 && len(withoutAddrs(iface.Addresses, l.Addresses...)) > 0 {
				region.Errorf("ENI %s has %v and is listed with %v", iface.ID, iface.Addresses, l.Addresses)
			}
			if !slices.Contains(l.Addresses, iface.Net(region.firstFamily()).Primary.Addr()) && !region.Region.Does().HidesPrimary {
				region.Errorf("ENI %s is listed with %v, which lacks its primary address", iface.ID, l.Addresses)
			}
		}
	}
}

func listEnds(region *region) {
	region.settledLook()
	region.eniWith(0)
	region.waitForLag()
	enough, pages := errors.New("enough"), 0
	complete, err := region.Region.List(region.ctx, func([]cloud.Listed) error {
		pages++
		return enough
	})
	if !errors.Is(err, enough) || complete || pages != 1 {
		region.Errorf("a list that its caller ends is complete: %v, after %d pages, with %v", complete, pages, err)
	}
}
