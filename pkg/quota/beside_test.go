package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhatOthersSendComesOffTheLimit(t *testing.T) {
	share := Limit{Burst: 80, PerSecond: 4}
	for _, tt := range []struct {
		of     Limit
		others float64
		want   Limit
	}{
		{share, 0, share},
		{share, -1, share},
		{share, 1, Limit{60, 3}},
		{share, 3, Limit{20, 1}},
		{share, 3.5, Limit{10, 0.5}},
		{share, 17, Limit{10, 0.5}},           // more than there is: half a request per second stays
		{Limit{1, 0.4}, 2, Limit{1, 0.4}},     // less than that was never there
		{Limit{4, 0.8}, 0.2, Limit{3, 0.6}},   // a bucket that is small already
		{Limit{80, 16}, 10, Limit{30, 6}},     // describes of 3,000 nodes every five minutes
		{Limit{Burst: 5}, 2, Limit{Burst: 5}}, // without a rate nothing comes off
	} {
		got := tt.of.Beside(tt.others)
		if d := got.PerSecond - tt.want.PerSecond; got.Burst != tt.want.Burst || d > 1e-9 || d < -1e-9 {
			t.Errorf("%v beside %v/s is %v, want %v", tt.of, tt.others, got, tt.want)
		}
	}
}

func TestALowerLimitCountsAtOnceAndAHigherOneTakesItsTime(t *testing.T) {
	b := NewBudget(map[string]Limit{action: {Burst: 10, PerSecond: 4}}, Limit{}, 0)
	b.SetLimit(action, Limit{Burst: 2, PerSecond: 1}, 0)
	for i, want := range []bool{true, true, false} {
		if b.Take(action, 0) != want {
			t.Errorf("request %d passes %t", i, !want)
		}
	}
	if got := b.Next(action, 0); got != time.Second {
		t.Errorf("the next one passes at %s", got)
	}
	b.SetLimit(action, Limit{Burst: 10, PerSecond: 4}, 0)
	if got := b.Next(action, 0); got != 250*time.Millisecond {
		t.Errorf("with the rate back the next one passes at %s", got)
	}
	if s := b.States(time.Minute); s[0].Tokens != 10 || s[0].Nominal != 4 {
		t.Errorf("a minute later %+v", s)
	}
}

// What throttling took does not come back by another limit.
func TestAnotherLimitLeavesTheThrottledRate(t *testing.T) {
	b := NewBudget(map[string]Limit{action: {Burst: 10, PerSecond: 4}}, Limit{}, 0)
	b.Throttled(action, 0, 0)
	for _, l := range []Limit{{Burst: 5, PerSecond: 3}, {Burst: 20, PerSecond: 8}} {
		b.SetLimit(action, l, 0)
		if s := b.States(0); s[0].PerSecond != 2 || s[0].Nominal != l.PerSecond || s[0].Tokens != 0 || s[0].Closed != time.Second {
			t.Errorf("with %v: %+v", l, s)
		}
	}
	b.SetLimit(action, Limit{Burst: 1, PerSecond: 1}, 0)
	if s := b.States(0); s[0].PerSecond != 1 {
		t.Errorf("with less than the throttled rate: %+v", s)
	}
}

// However limits change, what passes in a time is never more than the largest burst and rate allow.
func TestNoChangeOfLimitsMakesTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Custom(func(t *rapid.T) Limit {
			return Limit{Burst: rapid.IntRange(1, 10).Draw(t, "burst"), PerSecond: float64(rapid.IntRange(1, 20).Draw(t, "rate"))}
		})
		first := limit.Draw(t, "limit")
		b, most := NewBudget(map[string]Limit{action: first}, Limit{}, 0), first
		now, passed := time.Duration(0), 0
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			next := limit.Draw(t, "limit")
			most = Limit{Burst: max(most.Burst, next.Burst), PerSecond: max(most.PerSecond, next.PerSecond)}
			b.SetLimit(action, next, now)
			for b.Take(action, now) {
				passed++
			}
			now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "later")) * time.Millisecond
			if bound := float64(most.Burst) + most.PerSecond*now.Seconds(); float64(passed) > bound+1e-6 {
				t.Fatalf("%d passed in %s, more than %v", passed, now, bound)
			}
		}
	})
}
