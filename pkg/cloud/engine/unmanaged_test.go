package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

func TestNobodyDeletesAnENIThatIsTaggedAsNotToBeTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{Cluster: "c"})
		a, err := w.node("i-2").CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 1})
		must(t, err)
		d := &edited{Driver: w.Driver("i-1", w.traits)}
		n := engine.New(d, engine.Options{Cluster: "c", Subnets: []string{"a"}})
		b, err := n.CreateInterface(t.Context(), cloud.Create{Token: "b", Subnet: "a", V4: 1})
		must(t, err)
		tagging(d, func(driver.Interface) bool { return true })
		must(t, w.Detach(a.ID))
		must(t, w.Terminate("i-2"))
		time.Sleep(time.Hour)
		for range 2 {
			_, err := n.Sweep(t.Context(), time.Minute)
			must(t, err)
		}
		if _, there := w.at(a.ID); !there {
			t.Errorf("Sweep deleted ENI %s", a.ID)
		}
		err = n.DeleteInterface(t.Context(), b.ID)
		if at, _ := w.at(b.ID); cloud.Kind(err) != cloud.ErrForbidden || at != "i-1" {
			t.Errorf("DeleteInterface of ENI %s, attached to %q now: %v", b.ID, at, err)
		}
	})
}
