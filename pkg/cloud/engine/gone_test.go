package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// ENIs come and go for years by other hands too: of one that somebody has deleted nothing is
// kept for long, and its room counts again.
func TestOfAnENIThatSomebodyHasDeletedNothingIsKept(t *testing.T) {
	for name, traits := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, traits, sim.Options{}, engine.Options{IPv6: true, Times: driver.Times{Poll: 500 * time.Millisecond}})
				n := w.node("i-1")
				before, err := n.Limits(t.Context())
				must(t, err)
				var ids []string
				for k := range 3 {
					i, err := n.CreateInterface(t.Context(), cloud.Create{Token: fmt.Sprint("t", k), Subnet: "a", V4: 3, V6: 1})
					must(t, err)
					shows(t, n, 2)
					must(t, w.Detach(i.ID))
					must(t, w.Update(func(tx *sim.Tx) error { return tx.Delete(i.ID) }))
					ids = append(ids, i.ID)
					for range 32 { // twice as long as between questions for ENIs that are attached nowhere, on average
						time.Sleep(5 * time.Minute)
						shows(t, n, 1)
					}
				}
				for _, id := range ids {
					if kept := n.Remembers(id); len(kept) > 0 {
						t.Errorf("of %s it keeps %q", id, kept)
					}
				}
				if now := n.LimitsNow(); now != before {
					t.Errorf("the limits were %+v and are %+v", before, now)
				}
			})
		})
	}
}
