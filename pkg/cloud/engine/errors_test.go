package engine

import (
	"fmt"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// What the driver tells of the cause reaches who called, however the error went through the engine.
func TestTheCauseOfAnErrorReachesTheCaller(t *testing.T) {
	refused := &driver.Error{Kind: cloud.ErrNotFound, Why: cloud.NoSuchSubnet, Detail: "sbn-1"}
	for what, tt := range map[string]struct {
		err  error
		kind error
	}{
		"as it is":      {refused, cloud.ErrNotFound},
		"about an ENI":  {aboutENI("eni-1", refused), cloud.ErrNotFound},
		"after a step":  {halfDone(refused), cloud.ErrUnknown},
		"wrapped in it": {fmt.Errorf("while it is made: %w", refused), cloud.ErrNotFound},
	} {
		err := tt.err
		nameError(&err, "CreateInterface", "sbn-1")
		e, is := err.(*cloud.Error)
		if !is || e.Why != cloud.NoSuchSubnet || e.Kind != tt.kind || e.Op != "CreateInterface" {
			t.Errorf("%s: the caller gets %#v", what, err)
		}
	}
}
