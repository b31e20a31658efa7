package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// A subnet loses the tag by which new ENIs lie in it. ENIs that are there still grow when others have left it.
func TestASubnetWithoutItsTagStillServesItsENIs(t *testing.T) {
	for _, untagged := range []bool{false, true} {
		play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
			w.leadWith(ctx, nil)
			w.begin(ctx)
			a := w.agents[0]
			a.set(2)
			w.until(3*time.Minute, w.isQuiet)
			w.must(w.LeaveFree("a", 1)) // others use the rest
			time.Sleep(6 * time.Minute)
			if untagged {
				w.must(w.Update(func(tx *sim.Tx) error { return tx.Untag([]string{"a"}, map[string]*string{"pods": nil}) }))
				time.Sleep(11 * time.Minute)
				if state := w.store.subnet("a").Status.State; state != "Missing" {
					t.Fatalf("the subnet is %s", state)
				}
			}
			w.must(w.LeaveFree("a", 1000)) // and leave it
			time.Sleep(6 * time.Minute)
			a.set(6) // the primary ENI has places for them
			w.until(2*time.Hour, w.isQuiet)
		})
	}
}
