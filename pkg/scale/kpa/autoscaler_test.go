package kpa

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// call is one evaluation with what it gives: "5", "5 burst" or "invalid".
type call struct {
	at            time.Duration
	stable, burst float64
	ready         int
	want          string
}

func (r Result) String() string {
	text, _ := json.Marshal(r.Desired)
	switch {
	case !r.Valid && r == Result{}:
		return "invalid"
	case r.Burst:
		return string(text) + " burst"
	}
	return string(text)
}

// fresh returns an autoscaler that starts now; calm one that is past the burst
// that each begins with.
func fresh(t testing.TB, change func(*Config)) *Autoscaler { return started(t, change, 0) }

func calm(t testing.TB, change func(*Config)) *Autoscaler { return started(t, change, -time.Hour) }

func started(t testing.TB, change func(*Config), at time.Duration) *Autoscaler {
	t.Helper()
	c := Default()
	if change != nil {
		change(&c)
	}
	a, err := NewAutoscaler(c, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *Autoscaler) holds(t *testing.T, id string, calls ...call) {
	t.Helper()
	for _, c := range calls {
		if got := a.Scale(c.at, c.stable, c.burst, c.ready).String(); got != c.want {
			t.Errorf("%s: at %s (%v, %v, %d): %s, want %s", id, c.at, c.stable, c.burst, c.ready, got, c.want)
		}
	}
}

// once holds a single call on an autoscaler of its own.
func once(t *testing.T, id string, change func(*Config), stable, burst float64, ready int, want string) {
	t.Helper()
	calm(t, change).holds(t, id, call{0, stable, burst, ready, want})
}

func total(c *Config) { c.TargetValue, c.TotalTargetValue = 0, 1000 }

// The document's example of a total target says 3 pods for 3000 of 1000 with 3
// ready. Its own formula and the implementation say 9: the formula is right. A
// metric that does not fall with more pods, like a queue's length, then grows the
// pods without end: 1, 3, 9, 27. A pool's demand is such a metric and needs no
// total target.
func TestTargets(t *testing.T) {
	fresh(t, nil).holds(t, "K19, the document's example", call{0, 300, 300, 3, "3 burst"})
	once(t, "K20", total, 3000, 3000, 3, "9 burst")
	once(t, "K21", total, 2500, 2500, 2, "5 burst")
	once(t, "K21", total, 500, 500, 5, "3")
	once(t, "K21", total, 1000, 1000, 3, "3")
	a, pods := calm(t, total), 1
	for now := range 5 {
		pods = a.Scale(time.Duration(now)*sec, 3000, 3000, pods).Desired
	}
	if pods != 243 {
		t.Errorf("a queue of 3000 that stays: %d pods, want 243", pods)
	}
}

// The document's burst: entered at 0 with 5/2, held at 30 s. It leaves at 90 s, a
// window after "load dropped" at 30 s. The implementation counts from when the load
// last was a burst, 0 s, and leaves at the first call after 60 s. For a pool that
// is right: what was no burst any more at 30 s need not be waited for. The test is
// >=, where the document writes > (K37).
func TestABurstEndsAWindowAfterItLastWasOne(t *testing.T) {
	a := calm(t, nil)
	a.holds(t, "K22", call{0, 500, 500, 2, "5 burst"}, call{30 * sec, 300, 300, 5, "5 burst"},
		call{60 * sec, 150, 150, 5, "5 burst"}, call{60*sec + 1, 150, 150, 5, "2"})
	a.holds(t, "a later burst knows nothing of it", call{70 * sec, 200, 400, 2, "4 burst"})
	a = calm(t, nil)
	a.holds(t, "K22, as the document calls it", call{0, 500, 500, 2, "5 burst"}, call{30 * sec, 300, 300, 5, "5 burst"},
		call{90 * sec, 150, 150, 5, "2"})
}

// The document's rates: 20 pods on 10 become 15, then 15 become 7. But 20 on 10 is
// a burst of exactly two, so the second call gives 15 until a minute is over (K23);
// 7 at once it gives only when the burst window reads less (K24). Burst before
// rates is right for a pool: what was just delivered is not taken away.
func TestRates(t *testing.T) {
	slow := func(c *Config) { c.MaxScaleUpRate = 1.5 }
	a := calm(t, slow)
	a.holds(t, "K23", call{0, 2000, 2000, 10, "15 burst"}, call{2 * sec, 500, 500, 15, "15 burst"}, call{61 * sec, 500, 500, 15, "7"})
	a = calm(t, slow)
	a.holds(t, "K24", call{0, 2000, 1900, 10, "15"}, call{2 * sec, 500, 500, 15, "7"})
	a = calm(t, func(c *Config) { c.MaxScaleUpRate = 2 })
	a.holds(t, "K25", call{0, 1000, 1000, 2, "4 burst"}, call{2 * sec, 50, 50, 8, "4 burst"})
	once(t, "K26", nil, 50, 50, 8, "4")
	once(t, "K26", nil, 0, 0, 3, "1")
	once(t, "K26", nil, 0, 0, 2, "1")
	once(t, "K26", nil, 0, 0, 1, "0")
}

// The limit down is one a call: two calls in a second halve twice. For a pool
// wrong, and Decide has an interval for it.
func TestTheLimitDownIsOfACall(t *testing.T) {
	a := calm(t, nil)
	a.holds(t, "", call{0, 0, 0, 16, "8"}, call{sec / 2, 0, 0, 8, "4"})
}

// A burst "never scales down", says the document; but the one that each autoscaler
// begins with knows no pods to hold on to (K27). For a pool wrong: a restart
// would release addresses. Decide begins with the pool it finds.
func TestAFreshAutoscalerMayShrink(t *testing.T) {
	a := fresh(t, nil)
	a.holds(t, "K27", call{0, 0, 0, 10, "5 burst"}, call{sec, 0, 0, 5, "5 burst"}, call{2 * sec, 300, 300, 10, "5 burst"})
}

// The document activates when more than 0 are desired, the implementation when the
// metric asks for any: with 10 ready and a metric of 0 that is 8 against 5 (K29).
// The implementation is right: pods that are only left over from the rate limit
// are no load. The document does not place activation and puts the rates after
// the burst; here the order is rates, activation, burst, delay, bounds, so that
// activation passes the limit up (K31) and the bounds rule over it (K30).
func TestActivation(t *testing.T) {
	activate := func(n int) func(*Config) { return func(c *Config) { c.ActivationScale = n } }
	a := calm(t, activate(3))
	a.holds(t, "K28", call{0, 50, 50, 1, "3"}, call{sec, 0, 0, 1, "0"})
	once(t, "K29", activate(8), 0, 0, 10, "5")
	once(t, "K30", func(c *Config) { c.ActivationScale, c.MaxScale = 5, 3 }, 50, 50, 1, "3")
	once(t, "K31", func(c *Config) { c.ActivationScale, c.MaxScaleUpRate = 50, 2 }, 100, 100, 2, "50")
	once(t, "K32", activate(5), 0, 50, 1, "0")
}

func TestBounds(t *testing.T) {
	ten := func(c *Config) { c.MaxScale = 10 }
	once(t, "K33", func(c *Config) { c.MinScale = 3 }, 50, 50, 5, "3")
	once(t, "K34", ten, 1400, 1400, 8, "10")
	a := calm(t, ten)
	a.holds(t, "K35", call{0, 4000, 4000, 8, "10 burst"})
	if err := a.Update(Default()); err != nil {
		t.Fatal(err)
	}
	// The high-water mark is from before the bounds.
	a.holds(t, "K35: without the maximum", call{sec, 100, 100, 10, "40 burst"})
}

func TestNoPodsReadyCountAsOne(t *testing.T) {
	once(t, "K36", nil, 100, 100, 0, "1")
	once(t, "K36", nil, 0, 0, 0, "0")
	once(t, "K36", nil, 200, 200, 0, "2 burst")
}

func TestBurstJudgesWholePods(t *testing.T) {
	once(t, "K37", nil, 200, 400, 2, "4 burst")
	once(t, "K38", nil, 200, 399, 2, "4 burst")
	once(t, "K39", nil, 200, 300, 2, "2")
	once(t, "K40", nil, 200, 390, 4, "2")
	fresh(t, nil).holds(t, "K41", call{0, 1500, 300, 10, "15 burst"})
}

func TestANegativeValueIsNotValidAndChangesNothing(t *testing.T) {
	a := fresh(t, nil)
	before := *a
	a.holds(t, "K42", call{0, -1, 100, 4, "invalid"}, call{0, 100, -1, 4, "invalid"})
	if diff := cmp.Diff(before, *a); diff != "" {
		t.Errorf("K42: state (-want +got):\n%s", diff)
	}
}

// The threshold is a ratio. The document's 200% is 2; 200 itself never is reached.
func TestThresholdsAtTheirEnds(t *testing.T) {
	a := fresh(t, func(c *Config) { c.BurstThreshold = 0 })
	a.holds(t, "K43", call{0, 100, 100, 1, "1 burst"}, call{time.Hour, 0, 0, 1, "1 burst"}, call{3 * time.Hour, 0, 0, 1, "1 burst"})
	once(t, "K44", func(c *Config) { c.BurstThreshold = 200 }, 100, 10000, 1, "1")
}

// The document goes from 10 to 3 after 35 s. The maximum alone does so at 30 s; the
// whole autoscaler then halves to 5 first, and a fresh one is held by its burst as
// well. The limit after the delay is right for a pool.
func TestTheDelay(t *testing.T) {
	delay := func(d time.Duration) func(*Config) { return func(c *Config) { c.ScaleDownDelay = d } }
	held := []call{{0, 1000, 1000, 10, "10"}, {10 * sec, 300, 300, 10, "10"}, {20 * sec, 300, 300, 10, "10"}, {28 * sec, 300, 300, 10, "10"}}
	a := calm(t, delay(30*sec))
	a.holds(t, "K45", append(held, call{30 * sec, 300, 300, 10, "5"}, call{35 * sec, 300, 300, 10, "5"})...)

	p, want := NewPeak(30*sec, delaySlot), []int{10, 10, 10, 3}
	for i, at := range []time.Duration{0, 10, 20, 35} {
		if got := p.Record(at*sec, []int{10, 3, 3, 3}[i]); got != want[i] {
			t.Errorf("the document's example: at %d s %d, want %d", at, got, want[i])
		}
	}
	a = calm(t, delay(30*sec))
	a.holds(t, "K48", call{0, 300, 200, 3, "3"}, call{0, 500, 400, 5, "5"})
}

// Neither is right for a pool: a delay that was taken away still holds, and a
// longer one forgets what it should hold. Decide keeps the past and asks it with
// the new delay.
func TestAnUpdateOfTheDelay(t *testing.T) {
	for _, tt := range []struct {
		id    string
		delay time.Duration
		want  string
	}{{"K46", 0, "10"}, {"K47", 60 * sec, "5"}} {
		c := Default()
		c.ScaleDownDelay = 30 * sec
		a := calm(t, func(to *Config) { *to = c })
		a.holds(t, tt.id, call{0, 1000, 1000, 10, "10"})
		c.ScaleDownDelay = tt.delay
		if err := a.Update(c); err != nil {
			t.Fatal(err)
		}
		a.holds(t, tt.id, call{10 * sec, 300, 300, 10, tt.want})
	}
}

// Floating point rounds 1.1 * 100 up to 111 and 33 / 1.1 down to 29. A pool would
// ask for an address too many or too few, so the equation and Decide divide whole
// numbers.
func TestRatesRoundInFloatingPoint(t *testing.T) {
	for ready, want := range map[int]string{2: "3", 9: "10", 10: "11", 30: "33", 100: "111"} {
		once(t, "K49", func(c *Config) { c.MaxScaleUpRate, c.BurstThreshold = 1.1, 1e9 }, 1e6, 1e6, ready, want)
	}
	for _, tt := range []struct {
		rate  float64
		ready int
		want  string
	}{{1.1, 11, "10"}, {1.1, 33, "29"}, {1.1, 110, "99"}, {1.5, 3, "2"}, {2, 7, "3"}, {1.7, 17, "10"}} {
		once(t, "K50", func(c *Config) { c.MaxScaleDownRate = tt.rate }, 0, 0, tt.ready, tt.want)
	}
}

// K51: what is no number asks for nothing, and that counts as valid. For a pool
// wrong: what can't be read must hold. Decide is given whole numbers, and whether
// they could be read.
func TestNoNumberAsksForNothing(t *testing.T) {
	once(t, "K51", nil, math.NaN(), math.NaN(), 5, "2")
}

// K52: an infinite rate up overflows to -2147483648 pods there. It is refused here,
// and a finite one that is too large stops at the most pods there can be.
func TestARateThatOverflowsIsRefused(t *testing.T) {
	c := Default()
	c.MaxScaleUpRate = math.Inf(1)
	_, err := NewAutoscaler(c, 0)
	if want := "max-scale-up-rate: +Inf: must be a number over 1"; err == nil || err.Error() != want {
		t.Errorf("K52: %v, want %s", err, want)
	}
	huge := func(c *Config) { c.MaxScaleUpRate, c.BurstThreshold = 1e300, 1e300 }
	once(t, "K52", huge, 1e20, 1e20, 3, "2147483647")
	once(t, "K52", huge, math.Inf(1), 1, 3, "2147483647")
}
