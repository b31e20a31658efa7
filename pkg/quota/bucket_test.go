package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const action = "AssignPrivateIpAddresses"

// The i-th of the requests that come at once passes after max(0, (i-B)/r) seconds, to the
// nanosecond: with EC2's limit of 100 and 5 per second and a share of 80 %.
func TestRequestsThatComeAtOncePassByTheClosedForm(t *testing.T) {
	limit := Limit{Burst: 100, PerSecond: 5}.Share(80)
	b := NewBudget(map[string]Limit{action: limit}, Limit{}, 0)
	want := map[int]time.Duration{1: 0, 80: 0, 81: 250 * time.Millisecond, 1000: 230 * time.Second, 5000: 1230 * time.Second}
	now := time.Duration(0)
	for i := 1; i <= 5000; i++ {
		now = b.Next(action, now)
		if !b.Take(action, now) {
			t.Fatalf("request %d: no token at %s, though Next says so", i, now)
		}
		if w, told := want[i]; told && now != w {
			t.Errorf("request %d passes at %s, want %s", i, now, w)
		}
		if w := time.Duration(max(0, i-80)) * 250 * time.Millisecond; now != w {
			t.Fatalf("request %d passes at %s, want %s", i, now, w)
		}
	}
}

func TestAShareLeavesARequestAtLeast(t *testing.T) {
	for _, tt := range []struct{ of, want Limit }{
		{Limit{100, 20}, Limit{80, 16}},
		{Limit{5, 1}, Limit{4, 0.8}},
		{Limit{1, 1}, Limit{1, 0.8}},
	} {
		if got := tt.of.Share(80); got != tt.want {
			t.Errorf("80 %% of %v is %v, want %v", tt.of, got, tt.want)
		}
	}
}

// Whatever is asked when, and whatever the cloud refuses meanwhile, no window of time holds more
// requests than the burst and what comes in that time.
func TestNoWindowHoldsMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{Burst: rapid.IntRange(1, 20).Draw(t, "burst"), PerSecond: float64(rapid.IntRange(1, 20000).Draw(t, "rate")) / 1000}
		b := NewBudget(nil, limit, 0)
		var passed []time.Duration
		now := time.Duration(0)
		for range rapid.IntRange(1, 120).Draw(t, "asked") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				b.Throttled(action, now, time.Duration(rapid.IntRange(0, 5000).Draw(t, "retry"))*time.Millisecond)
			case 1, 2, 3:
				now += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "later"))
			case 4:
				now = b.Next(action, now)
			default:
				if b.Take(action, now) {
					passed = append(passed, now)
				}
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				in := (passed[j] - passed[i]).Seconds()
				if n := float64(j - i + 1); n > float64(limit.Burst)+limit.PerSecond*in+1e-6 {
					t.Fatalf("%g requests in %g s, limit %v", n, in, limit)
				}
			}
		}
	})
}

// Asking when Next says so passes one request after the other, also while the rate recovers.
func TestNextIsNeverForEver(t *testing.T) {
	b := NewBudget(map[string]Limit{action: {Burst: 2, PerSecond: 5}}, Limit{}, 0)
	b.Throttled(action, 0, 0)
	now, asked := time.Duration(0), 0
	for passed := 0; passed < 500; asked++ {
		due := b.Next(action, now)
		if due < now {
			t.Fatalf("Next(%s) = %s", now, due)
		}
		if now = due; b.Take(action, now) {
			passed++
		}
	}
	if asked > 520 {
		t.Errorf("asked %d times for 500 requests", asked)
	}
	if now < 100*time.Second || now > 120*time.Second {
		t.Errorf("500 requests at 5 per second, after a refusal, took %s", now)
	}
}

func TestARefusalHalvesTheRateAndItComesBackInSteps(t *testing.T) {
	b := NewBudget(map[string]Limit{action: {Burst: 100, PerSecond: 5}}, Limit{}, 0)
	rate := func(at time.Duration) float64 { return b.States(at)[0].PerSecond }
	b.Throttled(action, 0, 3*time.Second)
	b.Throttled(action, 100*time.Millisecond, 0) // sent with the first
	if s := b.States(time.Second)[0]; s.Tokens != 0 || s.PerSecond != 2.5 || s.Closed != 2*time.Second {
		t.Errorf("a second after a refusal: %+v", s)
	}
	if next := b.Next(action, time.Second); next != 3400*time.Millisecond {
		t.Errorf("the next request passes at %s, want 3.4s: the pause, and a token at 2.5 per second", next)
	}
	for _, tt := range []struct {
		at   time.Duration
		want float64
	}{{13 * time.Second, 3}, {22 * time.Second, 3}, {23 * time.Second, 3.5}, {53 * time.Second, 5}, {time.Hour, 5}} {
		if got := rate(tt.at); got != tt.want {
			t.Errorf("at %s %g per second, want %g", tt.at, got, tt.want)
		}
	}
	for i := range 20 {
		b.Throttled(action, time.Hour+time.Duration(i)*2*time.Second, 0)
	}
	if got := rate(time.Hour + 40*time.Second); got != 0.5 {
		t.Errorf("after 20 refusals %g per second, want 0.5", got)
	}
}
