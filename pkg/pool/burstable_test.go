package pool

import (
	"fmt"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/google/go-cmp/cmp"
)

// most is what a node of enis ENIs with per slots holds with that max-allocate, 0
// for none: the three cases of sources/cce-planned-cluster-mode.md, 3.2.2.3.
func most(enis, per, allocate int) int {
	c := Config{Mode: Burstable, MaxAllocate: allocate}
	return c.Most(eni.Limits{ENIs: enis, V4: per + 1}, v4, 0)
}

// The rows of the table of steady states: when the ENIs from the second on appear,
// and what each holds at the end. q counts the primary.
func TestABurstableNodeFollowsTheTable(t *testing.T) {
	for _, tt := range []struct {
		enis, q, allocate int
		appear            []int // used slots at which ENI 2, 3 and so on come
		fills             []int
		footprint         int
	}{
		{8, 30, 128, []int{1, 30, 59, 88}, []int{29, 29, 29, 29, 12}, 133},
		{8, 30, 110, []int{1, 30, 59}, []int{29, 29, 29, 23}, 114},
		{8, 30, 232, []int{1, 30, 59, 88, 117, 146, 175}, []int{29, 29, 29, 29, 29, 29, 29, 29}, 240},
		{8, 30, 300, []int{1, 30, 59, 88, 117, 146, 175}, []int{29, 29, 29, 29, 29, 29, 29, 29}, 240},
		{8, 40, 128, []int{1, 40, 79}, []int{39, 39, 39, 11}, 132},
		{8, 40, 256, []int{1, 40, 79, 118, 157, 196}, []int{39, 39, 39, 39, 39, 39, 22}, 263},
		{8, 40, 312, []int{1, 40, 79, 118, 157, 196, 235}, []int{39, 39, 39, 39, 39, 39, 39, 39}, 320},
		{8, 16, 110, []int{1, 16, 31, 46, 61, 76, 91}, []int{15, 15, 15, 15, 15, 15, 15, 5}, 118},
		{2, 8, 110, []int{1}, []int{7, 7}, 16},
		{8, 30, 30, []int{1}, []int{29, 1}, 32},
		{8, 40, 32, nil, []int{32}, 33},
	} {
		name := fmt.Sprintf("E%d Q%d M%d", tt.enis, tt.q, tt.allocate)
		per := tt.q - 1
		limit := most(tt.enis, per, tt.allocate)
		var appear, fills []int
		for used := 1; used <= limit; used++ {
			for n := enisFor(limit, per, 1, used-1); n < enisFor(limit, per, 1, used); n++ {
				appear = append(appear, used)
			}
		}
		for k := 1; fillOf(limit, per, k) > 0; k++ {
			fills = append(fills, fillOf(limit, per, k))
		}
		if diff := cmp.Diff(tt.appear, appear); diff != "" {
			t.Errorf("%s: ENIs appear at (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.fills, fills); diff != "" {
			t.Errorf("%s: fills (-want +got):\n%s", name, diff)
		}
		if got := footprintOf(limit, per); got != tt.footprint {
			t.Errorf("%s: footprint %d, want %d", name, got, tt.footprint)
		}
	}
}

// The note's example, 8 ENIs of 30. Its "consumed 1" in the second case is a copy
// of the first: 29 are.
func TestABurstableNodeFollowsTheExampleOfTheNote(t *testing.T) {
	for _, tt := range []struct{ used, enis, free int }{{0, 1, 29}, {1, 2, 57}, {29, 2, 29}, {30, 3, 57}} {
		n := enisFor(232, 29, 1, tt.used)
		if n != tt.enis || n*29-tt.used != tt.free {
			t.Errorf("%d used: %d ENIs with %d free, want %d with %d", tt.used, n, n*29-tt.used, tt.enis, tt.free)
		}
	}
}

// literal follows the words: "make one more ENI at once while fewer than
// multiple*(Q-1) slots are free", "the last one gets only what remains".
func literal(limit, per, multiple, allocate, used int) (enis, slots int) {
	for slots-used < multiple*per && slots < allocate && enis < limit {
		enis++
		slots += min(per, allocate-slots)
	}
	return enis, slots
}

// Three ways to say the same: the words of the rule, the closed form, and the
// scaling equation with an ENI as its batch.
func TestTheClosedFormAndTheEquationAreTheRule(t *testing.T) {
	for enis := 1; enis <= 8; enis++ {
		for _, q := range []int{2, 8, 16, 30, 40} {
			per, limits := q-1, eni.Limits{ENIs: enis, V4: q}
			for _, allocate := range []int{0, 1, 7, 15, 29, 30, 32, 64, 110, 128, 232, 312} {
				for multiple := 1; multiple <= 3; multiple++ {
					c := Config{Mode: Burstable, MaxAllocate: allocate, Multiple: multiple, Scale: scale.Default()}
					sizing, limit := c.Sizing(limits, v4), c.Most(limits, v4, 0)
					for used := 0; used <= limit; used++ {
						n, slots := literal(enis, per, multiple, limit, used)
						if got := enisFor(limit, per, multiple, used); got != n {
							t.Fatalf("E%d Q%d M%d B%d U%d: %d ENIs, want %d", enis, q, allocate, multiple, used, got, n)
						}
						if got := sizing.Need(used, 0, limit); got != slots || got != min(limit, n*per) {
							t.Fatalf("E%d Q%d M%d B%d U%d: %d slots, want %d", enis, q, allocate, multiple, used, got, slots)
						}
					}
				}
			}
		}
	}
}

// TestTheLastENIIsWhatRemainsOfTheSlots: the note divides by the addresses of an
// ENI with its primary, and comes to another number.
func TestTheLastENIIsWhatRemainsOfTheSlots(t *testing.T) {
	for _, tt := range []struct{ most, q, want, note int }{{128, 30, 12, 8}, {128, 40, 11, 8}, {256, 40, 22, 16}, {312, 40, 39, 32}} {
		per := tt.q - 1
		last := fillOf(tt.most, per, ceilDiv(tt.most, per))
		if last != tt.want || tt.most%tt.q != tt.note {
			t.Errorf("most %d of %d an ENI: last has %d, want %d; by the note %d, want %d", tt.most, tt.q, last, tt.want, tt.most%tt.q, tt.note)
		}
		if full := (ceilDiv(tt.most, per) - 1) * per; full+last != tt.most || full+tt.note == tt.most {
			t.Errorf("most %d: %d slots by remainder, %d by the note", tt.most, full+last, full+tt.note)
		}
	}
}

func TestANodeThatHoldsNothingHasNoENI(t *testing.T) {
	if got := enisFor(0, 29, 1, 0) + fillOf(0, 29, 1) + footprintOf(0, 29) + enisFor(10, 0, 1, 0) + footprintOf(10, 0); got != 0 {
		t.Errorf("sum %d, want 0", got)
	}
}

// TestThePlanMakesTheENIsOfTheClosedForm grows a node pod by pod and compares.
func TestThePlanMakesTheENIsOfTheClosedForm(t *testing.T) {
	for _, tt := range []struct{ enis, q, allocate, multiple int }{
		{8, 30, 128, 1}, {8, 30, 300, 1}, {8, 40, 32, 1}, {8, 16, 110, 2}, {2, 8, 110, 1}, {8, 30, 30, 3},
	} {
		c := Config{Mode: Burstable, FirstENI: 1, MaxAllocate: tt.allocate, Multiple: tt.multiple, ReturnENIs: true, Scale: scale.Default()}
		s := Snapshot{Families: both, Limits: eni.Limits{ENIs: tt.enis + 1, V4: tt.q, V6: tt.q}, Unmanaged: 1,
			Subnets: []Subnet{{ID: "subnet-a", Free: 1000, New: true}}}
		per, limit := tt.q-1, c.Most(s.Limits, both, 0)
		for used := range limit + 1 {
			usePods(s, used)
			target := c.Sizing(s.Limits, both).Need(used, 0, limit)
			s = applied(s, Plan(c, s, target))
			if steps := Plan(c, s, target); len(steps) > 0 {
				t.Fatalf("%+v, %d used: a second plan: %+v", tt, used, steps)
			}
			checkENIs(t, s, enisFor(limit, per, tt.multiple, used), func(k int) int { return fillOf(limit, per, k) })
		}
		for used := limit; used >= 0; used-- {
			usePods(s, used)
			target := c.Sizing(s.Limits, both).Need(used, 0, limit)
			s = applied(s, Plan(c, s, target))
			checkENIs(t, s, enisFor(limit, per, tt.multiple, used), func(k int) int { return fillOf(limit, per, k) })
		}
	}
}

// usePods lets pods use the first n slots, in the order of the ENIs.
func usePods(s Snapshot, n int) {
	for _, f := range s.Families {
		left := n
		for i := range s.ENIs {
			for k := range s.ENIs[i].Addresses {
				if a := &s.ENIs[i].Addresses[k]; a.Family() == f {
					a.State = eni.Free
					if left > 0 {
						a.State = eni.Used
						left--
					}
				}
			}
		}
	}
}

func checkENIs(t *testing.T, s Snapshot, n int, fill func(k int) int) {
	t.Helper()
	if len(s.ENIs) != n {
		t.Fatalf("%d ENIs, want %d", len(s.ENIs), n)
	}
	for i, e := range s.ENIs {
		for _, f := range s.Families {
			if got := number(e, f, anyway); got != fill(i+1) {
				t.Fatalf("ENI %d has %d %s addresses, want %d", i+1, got, f, fill(i+1))
			}
		}
	}
}
