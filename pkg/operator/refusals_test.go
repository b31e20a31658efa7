package operator

import (
	"fmt"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/order"
)

// Whatever the cloud refuses, people are told a reason of it: a condition without one is not taken by the API server.
func TestEachKindOfRefusalHasAReasonInTheObject(t *testing.T) {
	for _, kind := range cloud.Kinds() {
		if c := causeOf(&cloud.Error{Op: "CreateInterface", Kind: kind}); order.ReasonOf(c.Kind) == "" {
			t.Errorf("%v is the cause %s, which no object tells", kind, c.Kind)
		}
	}
}

// Only another subnet helps, or the right instance; the cloud itself is well.
func TestWhatDoesNotExistIsNotToldAsACloudThatFails(t *testing.T) {
	for why, want := range map[cloud.Why]order.Reason{cloud.NoSuchSubnet: "NoSubnet", cloud.NoSuchInstance: "InstanceUnknown", cloud.NoSuchInterface: "CloudUnavailable"} {
		err := fmt.Errorf("create: %w", &cloud.Error{Op: "CreateInterface", Kind: cloud.ErrNotFound, Why: why, Detail: "no such thing"})
		if c := causeOf(err); order.ReasonOf(c.Kind) != want || c.Words != "the cloud: "+err.Error() {
			t.Errorf("%v is told as %s: %s", why, order.ReasonOf(c.Kind), c.Words)
		}
	}
}
