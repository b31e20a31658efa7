package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Nodes of one zone whose only ENIs lie in two subnets. Pods of the last one wait for addresses of b: that a has some helps them as
// little as what a node idles there.
func TestIdleSlotsAreAskedForWhereTheyHelp(t *testing.T) {
	for name, freeInA := range map[string]int{"the other subnet has room": 4, "the other subnet has none": 0} {
		t.Run(name, func(t *testing.T) {
			s := setup{nodes: 3, lieIn: []string{"a", "b", "b"}, typ: sim.Type{Name: "small", ENIs: 1, V4: 16},
				subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/28")}, {ID: "b", V4: mustPrefix("10.0.1.0/28")}}}
			play(t, s, func(ctx context.Context, w *world) {
				for i, spare := range []int{8, 4, 0} {
					w.agents[i].spare = spare
				}
				w.leadWith(ctx, nil)
				w.begin(ctx)
				w.until(3*time.Minute, w.isQuiet)
				time.Sleep(6 * time.Minute)
				w.must(w.LeaveFree("a", freeInA))
				w.must(w.LeaveFree("b", 0))
				w.agents[2].set(2)
				w.until(5*time.Minute, func() bool { return len(w.agents[2].used()) == 2 })
				time.Sleep(time.Minute)
				for i, want := range []int32{0, 2, 0} {
					if asked := w.store.node(w.agents[i].name).Status.Reclaim; asked != want {
						t.Errorf("%s is asked for %d slots, want %d", w.agents[i].name, asked, want)
					}
				}
				if a, b := len(w.agents[0].addresses()), len(w.agents[1].addresses()); a != 8 || b != 2 {
					t.Errorf("the others have %d and %d left, want 8 and 2", a, b)
				}
				w.must(w.LeaveFree("b", 8))
				w.agents[2].set(0)
				w.until(10*time.Minute, func() bool { return w.store.node("node-001").Status.Reclaim == 0 && w.isQuiet() })
				w.check()
			})
		})
	}
}
