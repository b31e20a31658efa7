package operator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// disturb has go wrong in a world what may, or ends that: answers that get lost, effects that come late, describes that lag, an API server that
// conflicts and fails.
func (w *world) disturb(on bool) {
	w.SetFaults()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.store.lag, w.store.percent = 0, 0; !on {
		return
	}
	w.store.lag, w.store.percent = 2*time.Second, 15
	w.SetFaults(
		sim.Chance{Action: sim.ActUnassign, Percent: 40, Fault: sim.Fault{Answer: sim.Lost, Later: 40 * time.Second}},
		sim.Chance{Action: sim.ActAssign, Percent: 15, Fault: sim.Fault{Answer: sim.Lost}},
		sim.Chance{Action: sim.ActCreate, Percent: 15, Fault: sim.Fault{Answer: sim.Lost}},
		sim.Chance{Action: sim.ActAttach, Percent: 15, Fault: sim.Fault{Answer: sim.Lost}},
		sim.Chance{Action: "", Percent: 5, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Throttled}}},
		sim.Chance{Action: "", Percent: 5, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}, After: true}})
}

// Operators are killed and paused, agents start again, nodes boot, calls get lost and take effect late, describes lag, the API server
// conflicts, fails and tells late: no pod ever has an address that is not on its node, and in the end each node has
// what it asks for, and the cloud has nothing else.
func TestNothingTwiceNothingLost(t *testing.T) {
	for seed := range uint64(sampled(6, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			account := sim.Options{Reuse: sim.ReuseLatest, Lag: 9 * time.Second, CreateTime: time.Second, AttachTime: 2 * time.Second, DetachTime: 2 * time.Second,
				Latency: map[string]sim.Latency{"": {Base: 50 * time.Millisecond, Jitter: 300 * time.Millisecond}}}
			play(t, setup{nodes: 3, seed: seed, account: account}, func(ctx context.Context, w *world) {
				rng := rand.New(rand.NewPCG(seed, 7))
				w.leadWith(ctx, nil)
				w.begin(ctx)
				w.disturb(true)
				var paused []*leader
				for range 80 {
					time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
					a := w.agents[rng.IntN(len(w.agents))]
					switch rng.IntN(8) {
					case 0: // killed in the middle of whatever it does
						w.lead.kill()
						if rng.IntN(2) == 0 { // else it had the time to release its lease
							time.Sleep(lease.Duration)
						}
						w.leadWith(ctx, nil)
					case 1: // it believes that it leads for as long as its lease lasts, and goes on in every other way
						w.lead.pause()
						paused = append(paused, w.lead)
						time.Sleep(lease.Duration)
						w.leadWith(ctx, nil)
					case 2:
						a.restart(rng.IntN(3) == 0)
					default:
						a.set(rng.IntN(12))
					}
				}
				w.disturb(false)
				for _, l := range paused {
					l.kill()
				}
				w.until(40*time.Minute, w.isQuiet)
				w.check()
			})
		})
	}
}
