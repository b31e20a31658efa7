// Package fleet tests agents and operators together: the real ones, many of them, in virtual time, with an account and an API server in
// memory in which all goes wrong that can.
package fleet

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/kube"
)

var (
	steps = flag.Int("fleet.steps", 1200, "steps of the random schedules, over all seeds")
	seed  = flag.Uint64("fleet.seed", 0, "replay this seed alone; 0 runs seeds from 1 on")
	trace = flag.Bool("fleet.trace", false, "tell what agents do")
)

func TestMain(m *testing.M) {
	kube.TakeLogs(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// stepsPerSeed is how long one schedule is.
const stepsPerSeed = 100

// TestNoScheduleLosesAnAddress lets random things happen to two operators and the agents of a few nodes, one of the schedules to those of
// 200 nodes: no address ever has two owners, none that a pod uses is lost, and once all is well again each node has what it needs, nothing
// is leaked, and nothing is written or called any more. A seed has the same schedule each time; what falls together in it may come in another
// order.
func TestNoScheduleLosesAnAddress(t *testing.T) {
	if *seed != 0 {
		play(t, *seed)
		return
	}
	count := *steps / stepsPerSeed
	if testing.Short() {
		count /= 10
	}
	for s := uint64(1); int(s) <= max(1, count); s++ {
		if !t.Run(fmt.Sprintf("seed %d", s), func(t *testing.T) { play(t, s) }) {
			t.Fatalf("replay with: go test ./test/fleet -run NoSchedule -fleet.seed %d", s)
		}
	}
}

// many divides the seeds of the schedules with 200 nodes. They are shorter: each of their steps takes as long as fifty others.
const many = 12

// play plays a schedule.
func play(t *testing.T, seed uint64) {
	t.Helper()
	nodes, steps := 3+int(seed%5), stepsPerSeed
	if seed%many == 0 {
		nodes, steps = 200, stepsPerSeed/3
	}
	bad, notes := run(t, seed, nodes, steps, nil)
	if len(bad) == 0 {
		return
	}
	for _, n := range notes {
		t.Log(n)
	}
	for _, b := range bad[:min(len(bad), 5)] {
		t.Errorf("seed %d: %s", seed, b)
	}
}

// run plays a schedule in a world that change has prepared, and returns what was wrong, and what had happened before.
func run(t *testing.T, seed uint64, nodes, steps int, change func(*world)) (bad, notes []string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		w := newWorld(t, ctx, seed, nodes)
		if change != nil {
			change(w)
		}
		w.begin()
		sleep(ctx, time.Minute)
		for range steps {
			if w.step(); w.isWrong() {
				break
			}
		}
		if !w.isWrong() && !w.hasty {
			w.calm()
			w.settle(3 * time.Hour)
		}
		cancel()
		for _, n := range w.nodes {
			n.stop()
		}
		w.life.Wait()
		sleep(context.Background(), 2*time.Minute) // timers of what was under way
		bad, notes = w.wrong, w.notes
	})
	return bad, notes
}
