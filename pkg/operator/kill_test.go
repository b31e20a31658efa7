package operator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// An operator is killed at each of its effects, before it and after it: the cloud's changes and the status writes. The next one goes
// on from what there is, with no ENI and no address that a run without a death would not have.
func TestKilledAtEveryEffect(t *testing.T) {
	account := sim.Options{Lag: 3 * time.Second, CreateTime: time.Second, AttachTime: time.Second, DetachTime: time.Second}
	deaths := 0
	step := sampled(1, 5)
	for at := 1; ; at += step {
		var died atomic.Bool
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " after ", after), func(t *testing.T) {
				play(t, setup{nodes: 1, account: account}, func(ctx context.Context, w *world) {
					var n atomic.Int64
					w.effect = func(do func(context.Context) error, ctx context.Context) error {
						if n.Add(1) != int64(at) {
							return do(ctx)
						}
						died.Store(true)
						if after {
							err := do(context.WithoutCancel(ctx))
							w.leading().cancel()
							return err
						}
						w.leading().cancel()
						return context.Canceled
					}
					w.store.overtake = func(string) {
						if n.Add(1) == int64(at) {
							died.Store(true)
							if after {
								go func() { // when the write has its answer on the way
									time.Sleep(time.Nanosecond)
									w.leading().cancel()
								}()
								return
							}
							w.leading().cancel()
						}
					}
					w.leadWith(ctx, nil)
					w.begin(ctx)
					go func() {
						for ctx.Err() == nil {
							<-w.leading().ended
							time.Sleep(lease.Duration)
							if ctx.Err() == nil {
								w.leadWith(ctx, nil)
							}
						}
					}()
					for _, pods := range []int{20, 2, 14} {
						w.agents[0].set(pods)
						w.until(20*time.Minute, w.isQuiet)
					}
					w.check()
					enis := 0
					w.View(0, func(tx *sim.Tx) { enis = len(tx.Interfaces()) })
					if enis > 3 {
						t.Errorf("there are %d ENIs, as many as 3 are needed", enis)
					}
				})
			})
		}
		if !died.Load() {
			break
		}
		deaths++
	}
	if deaths < 15/step {
		t.Errorf("only %d effects were met", deaths)
	}
}
