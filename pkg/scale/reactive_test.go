package scale

import (
	"testing"
	"time"
)

func reactive(batch, minFree, maxFree int) Config {
	c := plain(batch, minFree)
	c.Strategy, c.MaxFree = Reactive, maxFree
	return c
}

// marks runs the monitor alone, second by second until it is content: what it
// releases is marked, and neither comes nor goes.
func marks(c Config, o Observation) (target, marked, calls int) {
	s := New(c, o.Owned, 0)
	for now := time.Second; ; now += time.Second {
		before := s.Target
		var d Decision
		s, d = c.Decide(s, now, o)
		o.Releasing += max(0, before-d.Target)
		if d.Target != before {
			calls++
		}
		if d.Again == 0 {
			return d.Target, o.Releasing, calls
		}
	}
}

func TestReactiveTakesTheStepsOfTheMonitor(t *testing.T) {
	for _, tt := range []struct {
		name                                 string
		owned, assigned, pending             int
		batch, minFree, maxFree, most, wants int
		exhausted                            bool
	}{
		{"grow", 10, 8, 0, 10, 50, 150, 30, 20, false},
		{"grow to whole batches", 10, 10, 0, 3, 50, 150, 30, 12, false},
		{"shrink where the subnet is exhausted", 10, 8, 0, 10, 50, 150, 30, 9, true},
		{"grow to the maximum", 16, 9, 0, 16, 50, 150, 30, 30, false},
		{"a batch above the maximum is the maximum", 16, 16, 0, 50, 50, 150, 30, 30, false},
		{"and its half is what is kept free", 20, 3, 0, 50, 50, 150, 30, 20, false},
		{"shrink", 20, 4, 0, 10, 50, 150, 30, 10, false},
		{"M is there and not exceeded, where CNS' code released already", 20, 5, 0, 10, 50, 150, 30, 20, false},
		{"shrink by three", 21, 15, 0, 3, 50, 150, 30, 18, false},
		{"shrink from the maximum to whole batches", 30, 5, 0, 16, 50, 150, 30, 16, false},
		{"what leaves already is not free", 64, 30, 8, 16, 50, 150, 250, 48, false},
		{"nothing to do", 16, 5, 0, 16, 50, 150, 250, 16, false},
		{"all used at the maximum", 30, 30, 0, 16, 50, 150, 30, 30, false},
	} {
		c := reactive(tt.batch, tt.minFree, tt.maxFree)
		o := Observation{
			Demand: tt.assigned, Assigned: tt.assigned, Owned: tt.owned, Releasing: tt.pending, Most: tt.most,
			Valid: true, Exhausted: tt.exhausted,
		}
		if _, d := c.Decide(New(c, tt.owned, 0), time.Second, o); d.Target != tt.wants {
			t.Errorf("%s: %d, want %d", tt.name, d.Target, tt.wants)
		}
	}
}

func TestReactiveGoesOneByOneWhereTheSubnetIsExhausted(t *testing.T) {
	for _, tt := range []struct{ owned, assigned, batch, target, calls int }{
		{20, 15, 10, 16, 4}, {48, 5, 16, 6, 42}, {16, 0, 16, 1, 15},
	} {
		o := Observation{Assigned: tt.assigned, Demand: tt.assigned, Owned: tt.owned, Most: 250, Valid: true, Exhausted: true}
		target, marked, calls := marks(reactive(tt.batch, 50, 150), o)
		if target != tt.target || marked != tt.owned-tt.target || calls != tt.calls {
			t.Errorf("%d of %d: %d with %d marked in %d calls, want %d in %d", tt.assigned, tt.owned, target, marked, calls, tt.target, tt.calls)
		}
	}
}

// Where m is a whole number the monitor is content with the equation's answer, and
// gets there as well, later. From above it ends a batch earlier where that leaves
// exactly M free, which is the one other size that is neither undershot nor exceeded.
func TestReactiveEndsWhereTheEquationBegins(t *testing.T) {
	for _, batch := range []int{1, 2, 8, 16, 30} {
		for _, minFree := range []int{0, 50, 100} {
			if batch*minFree%100 != 0 {
				continue
			}
			for used := 1; used < 200; used += 7 {
				o := Observation{Demand: used, Assigned: used, Owned: 6 * batch, Most: 250, Valid: true}
				// Addresses come and go at once.
				c := reactive(batch, minFree, minFree+100)
				s := New(c, o.Owned, 0)
				for now := range 400 {
					var d Decision
					s, d = c.Decide(s, time.Duration(now)*time.Second, o)
					o.Owned = d.Target
				}
				want := c.Need(used, 0, o.Most)
				if _, high := c.Thresholds(); want < 6*batch && want+batch-used == high {
					want += batch
				}
				if s.Target != want {
					t.Errorf("batch %d, %d %%: %d used get %d, want %d", batch, minFree, used, s.Target, want)
				}
			}
		}
	}
}

func TestReactiveTellsItsReason(t *testing.T) {
	for _, tt := range []struct {
		assigned, most int
		exhausted      bool
		want           Reason
	}{
		{9, 250, false, Up}, {8, 250, false, Steady}, {9, 16, false, Clamped}, {5, 250, true, Exhausted},
	} {
		o := Observation{Demand: tt.assigned, Assigned: tt.assigned, Owned: 16, Most: tt.most, Valid: true, Exhausted: tt.exhausted}
		c := reactive(16, 50, 150)
		if _, d := c.Decide(New(c, 16, 0), time.Second, o); d.Reason != tt.want {
			t.Errorf("%d of 16 used, at most %d: %s, want %s", tt.assigned, tt.most, d.Reason, tt.want)
		}
	}
}

// M is exceeded by the address after it: one pod of 9 that goes leaves exactly M of 32
// free and moves nothing, the second gives a batch back.
func TestReactiveReleasesWhenMIsExceeded(t *testing.T) {
	n := newNode(reactive(16, 50, 150), 16)
	see := func(now int) second {
		used := from(now, 30, from(now, 20, from(now, 10, 8, 9), 8), 7)
		return second{Observation: Observation{Demand: used, Assigned: used, Most: 250, Valid: true}}
	}
	if got, want := n.history(50, see), "1:16 10:32 30:16"; got != want {
		t.Errorf("targets %s, want %s", got, want)
	}
}

// The defects of the monitor that a comparison has no use for.
func TestReactiveLeavesTheDefectsOut(t *testing.T) {
	t.Run("thresholds in floats swing a pool for ever", func(t *testing.T) {
		n := newNode(reactive(25, 14, 114), 25)
		see := func(int) second {
			return second{Observation: Observation{Demand: 22, Assigned: 22, Most: 250, Valid: true}}
		}
		if got, want := n.history(100, see), "1:50"; got != want {
			t.Errorf("targets %s, want %s", got, want)
		}
	})
	t.Run("a maximum below the pool is asked for without a release, or passed", func(t *testing.T) {
		n := newNode(reactive(16, 50, 150), 250)
		see := func(t int) second {
			s := sees(240)
			s.Assigned, s.Most = from(t, 20, 240, 90), from(t, 10, 250, 100)
			return s
		}
		if got, want := n.history(100, see), "1:250 10:240 20:224 21:208 22:192 23:176 24:160 25:144 26:128 27:112 28:96 29:100"; got != want {
			t.Errorf("targets %s, want %s", got, want)
		}
	})
	t.Run("what pods have is not released above a maximum", func(t *testing.T) {
		o := Observation{Owned: 64, Assigned: 62, Demand: 62, Most: 10, Valid: true}
		c := reactive(16, 50, 150)
		if _, d := c.Decide(New(c, 64, 0), time.Second, o); d.Target != 62 || d.Reason != Release {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("a demand that can't be read releases nothing", func(t *testing.T) {
		o := Observation{Owned: 48, Assigned: 5, Most: 250}
		c := reactive(16, 50, 150)
		if _, d := c.Decide(New(c, 48, 0), time.Second, o); d.Target != 48 || d.Reason != HoldUnreadable || d.Again != 0 {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("a second look before the marks releases no second batch", func(t *testing.T) {
		o := Observation{Owned: 32, Assigned: 5, Demand: 5, Most: 250, Valid: true}
		c := reactive(16, 50, 150)
		s, _ := c.Decide(New(c, 32, 0), time.Second, o)
		if s, d := c.Decide(s, 2*time.Second, o); s.Target != 16 || d.Reason != Steady {
			t.Errorf("got %+v", d)
		}
	})
}
