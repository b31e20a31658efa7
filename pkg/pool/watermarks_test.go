package pool

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
)

func TestNeededFollowsTheVectors(t *testing.T) {
	for _, tt := range []struct{ have, used, pre, min, most, want int }{
		{0, 0, 0, 16, 0, 16}, {0, 0, 16, 8, 0, 16}, {8, 0, 0, 16, 0, 8}, {8, 4, 8, 0, 0, 4},
		{8, 4, 8, 8, 6, 0}, {8, 4, 8, 0, 8, 0}, {4, 4, 8, 0, 8, 4},
		{4, 4, 1, 1, 0, 1}, {0, 0, 2, 10, 0, 10}, {10, 9, 2, 10, 0, 1}, {10, 10, 2, 10, 0, 2},
	} {
		if got := neededBy(tt.have, tt.used, watermarks{Pre: tt.pre, Min: tt.min, Most: tt.most}); got != tt.want {
			t.Errorf("%+v: needed %d", tt, got)
		}
	}
}

// kept is how many slots a plan leaves of have rested and used ones.
func kept(c Config, have, used int) int {
	s := node(v4, card(0, v4, have-used, used))
	s.Limits.V4, s.Subnets[0].Free = 1000, 1000
	target := c.Sizing(s.Limits, v4).Need(used, 0, 999)
	s = applied(s, Plan(c, s, target))
	return len(s.ENIs[0].Addresses)
}

// excessBy is the code's. Where a plan leaves another number than that, the plan is
// right for a pool: one slot above the watermark the code drops to Pre+Above free
// ones as if there were no Min. With Above 0 it even drops below Min, and has to ask
// for the same addresses again at the next look.
func TestExcessFollowsTheVectorsAndAPlanRestsWhereItEnds(t *testing.T) {
	for _, tt := range []struct{ have, used, pre, min, above, want, left int }{
		{15, 0, 8, 16, 8, 0, 24}, {20, 0, 8, 16, 4, 0, 20}, {21, 0, 8, 0, 4, 9, 12}, {20, 4, 8, 17, 8, 0, 20},
		{20, 4, 8, 0, 0, 8, 12}, {20, 4, 8, 0, 8, 0, 20},
		{4, 0, 1, 1, 2, 1, 3}, {4, 1, 1, 1, 2, 0, 4}, {34, 0, 2, 10, 24, 0, 34}, {60, 20, 2, 10, 24, 14, 46}, {60, 35, 2, 10, 24, 0, 60},
		{17, 0, 8, 16, 0, 9, 16},  // the code is left with 8 where 16 are to be there
		{35, 0, 2, 10, 24, 9, 34}, // with 26: one slot too many costs nine
		{100, 0, 0, 0, 0, 100, 1}, // Pre 0 is read as 1
	} {
		if got := excessBy(tt.have, tt.used, watermarks{Pre: tt.pre, Min: tt.min, Above: tt.above}); got != tt.want {
			t.Errorf("%+v: excess %d", tt, got)
		}
		c := Config{Mode: BestEffort, PreAllocate: tt.pre, MinAllocate: tt.min, MaxAboveWatermark: tt.above, Scale: scale.Default()}
		if got := kept(c, tt.have, tt.used); got != tt.left {
			t.Errorf("%+v: a plan leaves %d", tt, got)
		}
		if lack := neededBy(tt.left, tt.used, watermarks{Pre: max(1, tt.pre), Min: tt.min}); lack > 0 {
			t.Errorf("%+v: a plan leaves %d slots and %d are needed at once", tt, tt.left, lack)
		}
	}
}

// TestTheWatermarksAreTheEquationWithABatchOfOne: a pool that is short of its
// target is short by neededBy.
func TestTheWatermarksAreTheEquationWithABatchOfOne(t *testing.T) {
	for _, pre := range []int{0, 1, 2, 8, 24} {
		for _, least := range []int{0, 1, 10, 30} {
			for _, allocate := range []int{0, 8, 33} {
				c := Config{Mode: BestEffort, PreAllocate: pre, MinAllocate: least, MaxAllocate: allocate, Scale: scale.Default()}
				limits := eni.Limits{ENIs: 4, V4: 17}
				sizing, limit := c.Sizing(limits, v4), c.Most(limits, v4, 0)
				for used := range limit {
					for have := used; have <= limit; have++ {
						want := neededBy(have, used, watermarks{Pre: max(1, pre), Min: least, Most: limit})
						if got := max(0, sizing.Need(used, 0, limit)-have); got != want {
							t.Fatalf("pre %d min %d most %d, %d of %d used: short by %d, want %d", pre, least, limit, used, have, got, want)
						}
					}
				}
			}
		}
	}
}
