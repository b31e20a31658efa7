package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A person takes an ENI off the node and puts it back there: it serves again, with its
// addresses and its intent, and where that is a matter of the attachment it goes with its
// instance again.
func TestAnENIThatIsAttachedAgainByHandServesAgain(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{Times: driver.Times{Poll: 500 * time.Millisecond}})
				n := w.node("i-1")
				shows(t, n, 1)
				i, err := n.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "a", V4: 3})
				must(t, err)
				upkeep := func(want ...string) {
					t.Helper()
					if changed, err := n.Upkeep(t.Context()); err != nil || !slices.Equal(changed, want) {
						t.Errorf("Upkeep changed %v, %v; want %v", changed, err, want)
					}
				}
				upkeep()
				shows(t, n, 2)
				upkeep()
				must(t, w.Detach(i.ID))
				time.Sleep(time.Minute)
				shows(t, n, 2)
				upkeep()
				w.moves(t, i.ID, "i-1")
				shows(t, n, 2)
				has(t, n, i.ID, i.Addresses, nil)
				if list := n.Known(); !list[1].Ours || list[1].Token != "a" {
					t.Errorf("it is shown as %+v", list[1])
				}
				if traits.Binds {
					upkeep(i.ID)
				}
				calls := w.Calls()[sim.ActModify]
				upkeep()
				shows(t, n, 2)
				upkeep()
				if more := w.Calls()[sim.ActModify] - calls; more > 0 {
					t.Errorf("what is in step was changed %d times", more)
				}
				must(t, w.Terminate("i-1"))
				if _, there := w.at(i.ID); there == traits.Binds {
					t.Errorf("without its instance the ENI is there %t", there)
				}
			})
		})
	}
}
