package operator_test

import (
	"context"
	"testing"
	"time"
)

// A leader whose clock was years ahead has left a number ahead of all clocks. After a backup was put back no leader gets the number of one that
// the backup does not know.
func TestNoEpochComesTwiceThoughAClockWasAhead(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.epoch = time.Now().AddDate(30, 0, 0).Unix()
		lead := func() int64 {
			w.leadWith(ctx, nil)
			before := w.lastEpoch()
			w.until(time.Minute, func() bool { return w.lastEpoch() > before })
			epoch := w.lastEpoch()
			w.lead.kill()
			time.Sleep(lease.Duration + time.Second)
			return epoch
		}
		lead()
		of, backup := w.lastEpoch(), w.store.save()
		seen := map[int64]bool{}
		for range 3 {
			for range 3 {
				epoch := lead()
				if seen[epoch] {
					t.Errorf("there were two leaders with epoch %d", epoch)
				}
				seen[epoch] = true
			}
			w.mu.Lock()
			w.epoch = of
			w.mu.Unlock()
			w.store.restore(backup, true)
		}
	})
}
