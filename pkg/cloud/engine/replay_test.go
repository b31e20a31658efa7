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

// Pods have given back what the ENI was made with, and a later process makes it again: it could
// not be written down that it was made. To requests with the same tokens the cloud answers
// what it did before.
func TestAddressesThatAnOldAnswerNamesAreNotBelieved(t *testing.T) {
	for name, lag := range map[string]time.Duration{"at once": 0, "lagging": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.LikeBCE(), sim.Options{Lag: lag, Seed: 1}, engine.Options{Times: driver.Times{Settle: 10 * time.Second}})
				n, request := w.node("i-1"), cloud.Create{Token: "intent", Subnet: "b", V4: 3}
				i, err := n.CreateInterface(t.Context(), request)
				must(t, err)
				must(t, n.UnassignAddresses(t.Context(), i.ID, i.Addresses))
				time.Sleep(time.Minute)
				again, err := w.node("i-1").CreateInterface(t.Context(), request)
				must(t, err)
				all := w.truth()
				if len(all) != 1 || len(again.Addresses) != 3 {
					t.Fatalf("there are %+v, returned was %+v", all, again)
				}
				for _, a := range again.Addresses {
					if !slices.Contains(all[0].V4, a) {
						t.Errorf("%s is not on the ENI, which has %v", a, all[0].V4)
					}
				}
			})
		})
	}
}
