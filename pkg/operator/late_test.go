package operator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// What the API server refuses of one node it is asked for less and less often, people read of it once, and others are served.
func TestAStatusThatIsRefusedIsNotWrittenAgainAndAgain(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		var tries atomic.Int64
		var refuses atomic.Bool
		refuses.Store(true)
		w.store.deny = func(name string) error {
			if name != "node-000" || !refuses.Load() {
				return nil
			}
			tries.Add(1)
			return errors.New("no role allows it")
		}
		var said bytes.Buffer
		w.leadWith(ctx, func(o *operator.Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(4)
		}
		time.Sleep(10 * time.Minute)
		if n := tries.Load(); n < 5 || n > 20 {
			t.Errorf("%d writes in ten minutes", n)
		}
		if n := w.store.node("node-001").Status.Slots; n < 4 {
			t.Errorf("the other node has %d slots", n)
		}
		refuses.Store(false)
		w.until(3*time.Minute, w.isQuiet)
		if n := strings.Count(said.String(), "no role allows it"); n != 1 {
			t.Errorf("said %d times:\n%s", n, &said)
		}
		w.check()
	})
}

// An operator dies while it makes an ENI, and nobody leads for longer than after what leaks are deleted. The next one finishes the ENI, and
// does not take it for one that nobody finishes.
func TestAnENIThatIsFinishedLateStays(t *testing.T) {
	account := sim.Options{Lag: 3 * time.Second, CreateTime: time.Second, AttachTime: time.Second, DetachTime: time.Second}
	for at := 1; at <= 6; at += sampled(1, 3) {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			play(t, setup{nodes: 1, account: account}, func(ctx context.Context, w *world) {
				var n atomic.Int64
				w.effect = func(do func(context.Context) error, ctx context.Context) error {
					err := do(context.WithoutCancel(ctx))
					if n.Add(1) == int64(at) {
						w.leading().cancel()
					}
					return err
				}
				w.leadWith(ctx, nil)
				w.begin(ctx)
				w.agents[0].set(20)
				time.Sleep(5 * time.Minute)
				select {
				case <-w.leading().ended:
				default:
					return // there are fewer effects
				}
				time.Sleep(10 * time.Minute)
				w.leadWith(ctx, nil)
				w.until(5*time.Minute, w.isQuiet)
				deleted := w.Calls()[sim.ActDelete]
				time.Sleep(30 * time.Minute)
				if w.Calls()[sim.ActDelete] != 0 {
					t.Errorf("ENIs were deleted: %d, then %d", deleted, w.Calls()[sim.ActDelete])
				}
				w.check()
			})
		})
	}
}
