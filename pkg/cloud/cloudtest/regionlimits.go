package cloudtest

import (
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// typed skips the test where the cloud tells no limits of types.
func (r *region) typed() {
	if !r.Region.Does().Types {
		r.Skip("the cloud tells the limits of instances alone")
	}
}

func limitsOfTypes(r *region) {
	r.typed()
	all, err := r.Region.Limits(r.ctx, []string{r.Type, r.Type})
	r.must(err)
	want, err := r.Cloud.Limits(r.ctx)
	r.must(err)
	if len(all) != 1 || all[r.Type] != want {
		r.Errorf("type %s may carry %+v, and an instance of it %+v", r.Type, all, want)
	}
}

func limitsOfNoType(r *region) {
	r.typed()
	all, err := r.Region.Limits(r.ctx, []string{"z9.nothing", r.Type})
	r.must(err)
	if _, there := all["z9.nothing"]; there || all[r.Type] == (eni.Limits{}) {
		r.Errorf("with a type that there is not the types may carry %+v", all)
	}
}

func limitsTogether(r *region) {
	r.typed()
	if r.Types == nil {
		r.Skip("the endpoint lacks a count of describes of types")
	}
	before := r.Types()
	all, err := r.Region.Limits(r.ctx, []string{"a9.nothing", r.Type, "z9.nothing"})
	r.must(err)
	if n := r.Types() - before; n != 1 || len(all) != 1 {
		r.Errorf("the limits of 3 types, one of which there is, are %+v, by %d requests", all, n)
	}
	none, err := r.Region.Limits(r.ctx, nil)
	r.must(err)
	if n := r.Types() - before; n != 1 || len(none) > 0 {
		r.Errorf("the limits of no type are %+v, by %d requests", none, n-1)
	}
}

func limitsOfInstances(r *region) {
	if r.Region.Does().Types {
		r.Skip("the cloud tells the limits of types")
	}
	_, err := r.Region.Limits(r.ctx, []string{"any"})
	r.is(err, cloud.ErrForbidden)
}
