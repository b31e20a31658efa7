package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// wordless puts no address and says that all went well.
type wordless struct{ driver.Driver }

func (d wordless) Assign(context.Context, driver.Assign) (driver.Assigned, error) {
	return driver.Assigned{}, nil
}

// A cloud may put no address and call that a success. Callers are told: who isn't asks again at once. An
// ENI that gets none is not left behind.
func TestNoAddressAtAllIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeBCE(), sim.Options{}, engine.Options{})
		made, err := w.node("i-1").CreateInterface(t.Context(), cloud.Create{Token: "made", Subnet: "a", V4: 1})
		must(t, err)
		n := engine.New(wordless{w.Driver("i-1", w.traits)}, engine.Options{Subnets: []string{"a"}})
		_, err = n.Interfaces(t.Context())
		must(t, err)
		if got, err := n.AssignAddresses(t.Context(), made.ID, eni.IPv4, 3); !errors.Is(err, cloud.ErrSubnetFull) {
			t.Errorf("AssignAddresses returned %v, %v", got, err)
		}
		if got, err := n.CreateInterface(t.Context(), cloud.Create{Token: "more", Subnet: "a", V4: 3}); !errors.Is(err, cloud.ErrSubnetFull) {
			t.Errorf("CreateInterface returned %+v, %v", got, err)
		}
		shows(t, n, 2)
	})
}
