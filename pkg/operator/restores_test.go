package operator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// backup is a backup of the store, with the lease.
type backup struct {
	saved
	epoch int64
}

// The store is put back several times, from backups that are not always older than the last one, with the lease, while leaders and agents come
// and go. No pod has an address that is not on its node, and in the end everything is as it should be.
func TestBackupsArePutBackAgainAndAgain(t *testing.T) {
	seeds := []uint64{18, 2, 34, 47, 51}
	if testing.Short() {
		seeds = seeds[:1]
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			account := sim.Options{Reuse: sim.ReuseLatest, Lag: 5 * time.Second, CreateTime: time.Second, AttachTime: time.Second, DetachTime: time.Second}
			play(t, setup{nodes: 3, seed: seed, account: account, conf: batchOf(4)}, func(ctx context.Context, w *world) {
				rng := rand.New(rand.NewPCG(seed, 17))
				if seed%3 == 0 {
					w.epoch = time.Now().AddDate(30, 0, 0).Unix()
				}
				w.leadWith(ctx, nil)
				w.begin(ctx)
				var backups []backup
				work := func(long time.Duration) {
					for end := w.since() + long; w.since() < end; {
						w.agents[rng.IntN(len(w.agents))].set(rng.IntN(14))
						time.Sleep(time.Duration(1+rng.IntN(40)) * time.Second)
					}
				}
				work(2 * time.Minute)
				for range 14 {
					switch rng.IntN(6) {
					case 0, 1:
						backups = append(backups, backup{w.store.save(), w.lastEpoch()})
					case 2:
						w.lead.kill()
						time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
						w.leadWith(ctx, nil)
					case 3:
						a := w.agents[rng.IntN(len(w.agents))]
						a.mu.Lock()
						a.silent = true
						a.mu.Unlock()
						long := time.Duration(rng.IntN(200)) * time.Second
						go func() {
							sleep(ctx, long)
							a.mu.Lock()
							a.silent, a.seen = false, nil
							a.mu.Unlock()
						}()
					default:
						if len(backups) == 0 {
							continue
						}
						b := backups[rng.IntN(len(backups))]
						another := rng.IntN(2) == 0
						if another {
							w.lead.kill()
						}
						w.store.restore(b.saved, true)
						if another {
							w.mu.Lock()
							w.epoch = b.epoch
							w.mu.Unlock()
							w.leadWith(ctx, nil)
						}
						for _, a := range w.agents {
							late := time.Duration(rng.IntN(5000)) * time.Millisecond
							go func() {
								sleep(ctx, late)
								a.reads(ctx)
							}()
						}
					}
					work(time.Duration(5+rng.IntN(150)) * time.Second)
				}
				w.until(30*time.Minute, w.isQuiet)
				time.Sleep(12 * time.Minute) // what calls of before have left is described
				w.until(30*time.Minute, w.isQuiet)
				w.check()
			})
		})
	}
}
