package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Somebody removes the tags of a node's ENIs, and another operator leads. Each of them takes the room of one ENI, not of two: the node
// gets what it has room for.
func TestAnENIThatHasLostItsTagsTakesItsRoomOnce(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(20) // three of four ENIs
		w.until(3*time.Minute, w.isQuiet)
		var ids []string
		w.View(0, func(tx *sim.Tx) {
			for _, nic := range tx.Interfaces() {
				if nic.Attachment != nil && nic.Attachment.Index > 0 {
					ids = append(ids, nic.ID)
				}
			}
		})
		if len(ids) != 2 {
			t.Fatalf("%d further ENIs", len(ids))
		}
		w.lead.kill()
		w.must(w.Update(func(tx *sim.Tx) error { return tx.Untag(ids, nil) }))
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		a.set(30)
		w.until(time.Hour, func() bool { return len(a.used()) == 30 })
	})
}
