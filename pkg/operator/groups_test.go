package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The security groups of a node's primary ENI change: those of its other ENIs follow, as where its agent calls the cloud.
func TestSecurityGroupsThatChangeReachTheENIsThatAreThere(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		for _, id := range []string{"sg-1", "sg-2"} {
			w.AddGroup(sim.Group{ID: id, Name: id})
		}
		groups := func(primary bool, set ...string) (got []string) {
			w.must(w.Update(func(tx *sim.Tx) error {
				for _, nic := range tx.Interfaces() {
					if nic.Attachment == nil || (nic.Attachment.Index == 0) != primary {
						continue
					}
					if got = nic.Groups; len(set) > 0 {
						return tx.Modify(nic.ID, sim.Edit{Groups: set})
					}
				}
				return nil
			}))
			return got
		}
		groups(true, "sg-1")
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.agents[0].set(20) // needs another ENI
		w.until(3*time.Minute, w.isQuiet)
		if got := groups(false); !slices.Equal(got, []string{"sg-1"}) {
			t.Fatalf("the new ENI has %v: the test shows nothing", got)
		}
		groups(true, "sg-2")
		time.Sleep(2 * time.Hour)
		if got := groups(false); !slices.Equal(got, []string{"sg-2"}) {
			t.Errorf("two hours later the ENI has %v, want sg-2", got)
		}
	})
}
