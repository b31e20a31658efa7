package cloudtest

import (
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// needTypes skips the test if the cloud tells no limits of types.
func (r *region) needTypes() {
	if !r.Region.Does().Types {
		r.Skip("the cloud tells the limits of instances alone")
	}
}

func limitsOfTypes(region *region) {
	region.needTypes()
	all, err := region.Region.Limits(region.ctx, []string{region.Type, region.Type})
	region.must(err)
	want, err := region.Cloud.Limits(region.ctx)
	region.must(err)
	if len(all) != 1 || all[region.Type] != want {
		region.Errorf("type %s may carry %+v, and an instance of it %+v", region.Type, all, want)
	}
}

func limitsOfNoType(region *region) {
	region.needTypes()
	all, err := region.Region.Limits(region.ctx, []string{"z9.nothing", region.Type})
	region.must(err)
	if _, there := all["z9.nothing"]; there || all[region.Type] == (eni.Limits{}) {
		region.Errorf("with a type that there is not the types may carry %+v", all)
	}
}

func limitsTogether(region *region) {
	region.needTypes()
	if region.Types == nil {
		region.Skip("the endpoint lacks a count of describes of types")
	}
	before := region.Types()
	all, err := region.Region.Limits(region.ctx, []string{"a9.nothing", region.Type, "z9.nothing"})
	region.must(err)
	if n := region.Types() - before; n != 1 || len(all) != 1 {
		region.Errorf("the limits of 3 types, one of which there is, are %+v, by %d requests", all, n)
	}
	none, err := region.Region.Limits(region.ctx, nil)
	region.must(err)
	if n := region.Types() - before; n != 1 || len(none) > 0 {
		region.Errorf("the limits of no type are %+v, by %d requests", none, n-1)
	}
}

func limitsOfInstances(region *region) {
	if region.Region.Does().Types {
		region.Skip("the cloud tells the limits of types")
	}
	_, err := region.Region.Limits(region.ctx, []string{"any"})
	region.checkKind(err, cloud.ErrForbidden)
}
