package cloudtest

import (
	"errors"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// list is List when answers have settled, by ID.
func (r *region) list() map[string]cloud.Listed {
	r.Helper()
	r.settle()
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

func listsAll(r *region) {
	r.look() // which VPC it is
	r.carrier(1)
	r.other.carrier(2)
	if r.spare() > 1 {
		r.create(2)
	}
	all := r.list()
	for at, n := range []*node{r.node, r.other} {
		for _, i := range n.see() {
			own := i.Index == 0
			if own && r.Region.Does().HidesPrimary {
				continue
			}
			l := all[i.ID]
			if l.Instance != r.Instances[at] || l.Subnet != i.Subnet || l.Primary != own || i.Ours != (l.For == r.Instances[at]) || l.Token != i.Token || l.Wrong != "" {
				r.Errorf("ENI %+v of %s is listed as %+v", i, r.Instances[at], l)
			}
			if i.Partial == nil && len(l.Blocks) == 0 && len(withoutAddrs(i.Addresses, l.Addresses...)) > 0 {
				r.Errorf("ENI %s has %v and is listed with %v", i.ID, i.Addresses, l.Addresses)
			}
			if !slices.Contains(l.Addresses, i.Net(r.family()).Primary.Addr()) && !r.Region.Does().HidesPrimary {
				r.Errorf("ENI %s is listed with %v, which lacks its primary address", i.ID, l.Addresses)
			}
		}
	}
}

func listEnds(r *region) {
	r.look()
	r.carrier(0)
	r.settle()
	enough, pages := errors.New("enough"), 0
	complete, err := r.Region.List(r.ctx, func([]cloud.Listed) error {
		pages++
		return enough
	})
	if !errors.Is(err, enough) || complete || pages != 1 {
		r.Errorf("a list that its caller ends is complete: %v, after %d pages, with %v", complete, pages, err)
	}
}
