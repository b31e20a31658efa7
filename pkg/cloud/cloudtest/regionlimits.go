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

func limitsOfInstances(r *region) {
	if r.Region.Does().Types {
		r.Skip("the cloud tells the limits of types")
	}
	_, err := r.Region.Limits(r.ctx, []string{"any"})
	r.is(err, cloud.ErrForbidden)
}
