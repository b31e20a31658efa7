package scale

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// asDocument is the strategy with the numbers of sources/kpa-algorithms.md: a batch is an
// address, so that batches are addresses, and there is no delay.
func asDocument(change func(*Config)) Config {
	c := Default()
	c.Strategy, c.Batch, c.Delay = KPA, 1, 0
	c.KPA.Utilization = 100
	if change != nil {
		change(&c)
	}
	return c
}

// evaluation is a call of recommend with what it gives: "5" or "5 burst". Values are of a
// metric of which a batch carries 100.
type evaluation struct {
	at, stable, burst, ready int
	want                     string
}

// evaluate makes calls from a state that is past the burst that a node begins with.
func evaluate(t *testing.T, id string, c Config, calls ...evaluation) {
	t.Helper()
	s := New(c, 0, -time.Hour)
	s.InBurst = false
	for _, e := range calls {
		s.Target = 0 // what the bounds and the pods have made of it is not looked at
		z := &sizing{c: c, o: Observation{Owned: e.ready, Most: math.MaxInt32, Valid: true}, s: s, before: s.Now}
		z.s.Now = e.at
		got := fmt.Sprint(z.boundTarget(z.recommendAddresses(ceilDiv(e.stable, 100), ceilDiv(e.burst, 100), max(e.ready, 1))))
		if z.s.InBurst {
			got += " burst"
		}
		if got != e.want {
			t.Errorf("%s: at %d s (%d, %d, %d): %s, want %s", id, e.at, e.stable, e.burst, e.ready, got, e.want)
		}
		s = z.s
	}
}

func knative(c *Config) { c.KPA.Form = KPAKnative }

// The document enters at 0 with 5/2, holds at 30 s, when the load has dropped, and leaves a
// stable window later. Its implementation counts from when it last saw a burst, 0 s. What was
// observed holds here until something else is, so the five that are there count from when
// they are seen.
func TestABurstEndsAWindowAfterTheLoadDropped(t *testing.T) {
	evaluate(t, "the document", asDocument(nil), evaluation{0, 500, 500, 2, "5 burst"}, evaluation{30, 300, 300, 5, "5 burst"},
		evaluation{89, 150, 150, 5, "5 burst"}, evaluation{90, 150, 150, 5, "2"})
	evaluate(t, "K22", asDocument(nil), evaluation{0, 500, 500, 2, "5 burst"}, evaluation{1, 500, 500, 5, "5 burst"}, evaluation{30, 300, 300, 5, "5 burst"},
		evaluation{60, 150, 150, 5, "5 burst"}, evaluation{61, 150, 150, 5, "2"}, evaluation{70, 200, 400, 2, "4 burst"})
}

// The document's rates: 20 on 10 become 15, and 5 on 15 become 7. But 20 on 10 is a burst of
// exactly two, so that the second gives 15 until the burst is over; 7 at once it gives where
// the newest mean is less.
func TestTheLimitsOfAStep(t *testing.T) {
	slow := asDocument(func(c *Config) { c.KPA.GrowPercent = 150 })
	evaluate(t, "K23", slow, evaluation{0, 2000, 2000, 10, "15 burst"}, evaluation{2, 500, 500, 15, "15 burst"}, evaluation{63, 500, 500, 15, "7"})
	evaluate(t, "K24", slow, evaluation{0, 2000, 1900, 10, "15"}, evaluation{2, 500, 500, 15, "7"})
	double := asDocument(func(c *Config) { c.KPA.GrowPercent = 200 })
	evaluate(t, "K25", double, evaluation{0, 1000, 1000, 2, "4 burst"}, evaluation{2, 50, 50, 8, "4 burst"})
	for ready, want := range map[int]string{8: "4", 3: "1", 2: "1", 1: "0"} {
		evaluate(t, "K26", asDocument(nil), evaluation{0, 0, 0, ready, want})
	}
	for ready, want := range map[int]string{2: "3", 9: "10", 10: "11", 30: "33", 100: "110"} { // in floats 100 make 111
		evaluate(t, "K49", asDocument(func(c *Config) { c.KPA.GrowPercent, c.BurstPercent = 110, mostPercent }), evaluation{0, 1e6, 0, ready, want})
	}
	for _, tt := range []struct {
		percent, ready int
		want           string
	}{{110, 11, "10"}, {110, 33, "30"}, {110, 110, "100"}, {150, 3, "2"}, {200, 7, "3"}, {170, 17, "10"}} { // in floats 29 and 99
		evaluate(t, "K50", asDocument(func(c *Config) { c.ShrinkPercent = tt.percent }), evaluation{0, 0, 0, tt.ready, tt.want})
	}
}

// The document activates where more than 0 are wanted, the implementation where the metric
// asks for any: 10 of which the limit leaves 5 become 8 or stay 5.
func TestActivation(t *testing.T) {
	least := func(n int, more ...func(*Config)) Config {
		return asDocument(func(c *Config) {
			c.KPA.Activation = n
			for _, change := range more {
				change(c)
			}
		})
	}
	evaluate(t, "K28", least(3), evaluation{0, 50, 50, 1, "3"}, evaluation{1, 0, 0, 1, "0"})
	evaluate(t, "the document", least(8), evaluation{0, 0, 0, 10, "8"})
	evaluate(t, "K29", least(8, knative), evaluation{0, 0, 0, 10, "5"})
	evaluate(t, "K31", least(50, func(c *Config) { c.KPA.GrowPercent = 200 }), evaluation{0, 100, 100, 2, "50"})
	evaluate(t, "K32", least(5), evaluation{0, 0, 50, 1, "0"})
}

func TestBurstsAreJudgedByWholeBatches(t *testing.T) {
	for id, e := range map[string]evaluation{
		"K19, the document's example": {0, 300, 300, 3, "3"}, "K33": {0, 50, 50, 5, "2"}, "K36": {0, 100, 100, 0, "1"}, "K36, none": {0, 0, 0, 0, "0"},
		"K36, a burst": {0, 200, 200, 0, "2 burst"}, "K37": {0, 200, 400, 2, "4 burst"}, "K38": {0, 200, 399, 2, "4 burst"},
		"K39": {0, 200, 300, 2, "2"}, "K40": {0, 200, 390, 4, "2"},
	} {
		evaluate(t, id, asDocument(nil), e)
	}
	evaluate(t, "K33", asDocument(func(c *Config) { c.MinPool = 3 }), evaluation{0, 50, 50, 5, "3"})
}

// The document goes from 10 to 3 after 35 s. What was wanted between two looks is known
// here: the same, so that 10 are held for 30 s from the last second that wanted them.
func TestTheDelayHoldsTheMostThatWasWanted(t *testing.T) {
	c := asDocument(func(c *Config) { c.Delay = 30 * time.Second })
	drop := []evaluation{{0, 1000, 1000, 10, "10"}, {1, 300, 300, 10, "10"}, {29, 300, 300, 10, "10"}}
	evaluate(t, "K45", c, append(drop, evaluation{30, 300, 300, 10, "5"}, evaluation{35, 300, 300, 10, "5"})...)
	evaluate(t, "the document", c, evaluation{0, 1000, 1000, 10, "10"}, evaluation{10, 300, 300, 10, "10"}, evaluation{38, 300, 300, 6, "10"}, evaluation{39, 300, 300, 6, "5"})
	evaluate(t, "K48", c, evaluation{0, 300, 200, 3, "3"}, evaluation{0, 500, 400, 5, "5"})
}

// A node in batches of 16 that pods may use up to 70 %: 12 pods of a batch ask for another
// one, though only when the mean has them; pods that need more have it at once.
func TestAPoolFollowsTheMeanOfItsPods(t *testing.T) {
	c := Default()
	c.Strategy = KPA
	for name, tt := range map[string]struct {
		owned, last int
		see         func(t int) second
		want        string
	}{
		"a few more pods, by the mean":           {16, 400, func(t int) second { return sees(from(t, 200, 2, 12)) }, "1:16 205:32"},
		"more than there is, at once":            {16, 300, func(t int) second { return sees(from(t, 200, 2, 30)) }, "1:16 200:32 243:48"},
		"a burst, by its mean":                   {16, 230, func(t int) second { return sees(from(t, 200, 2, 60)) }, "1:16 200:64 204:80 205:96"},
		"a fall, by window, delay, limit, steps": {96, 600, func(t int) second { return sees(from(t, 100, 60, 2)) }, "1:96 223:80 253:48 343:32 373:16"},
		"what can't be read holds": {96, 600, func(t int) second {
			s := sees(from(t, 100, 60, 2))
			s.Valid = t < 90 || t > 400
			return s
		}, "1:96 524:80 554:48"},
	} {
		if got := newNode(c, tt.owned).history(tt.last, tt.see); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func anyKPA(t *rapid.T) Config {
	c := anyConfig(t)
	c.Strategy = KPA
	c.KPA = KPAConfig{
		Form:        rapid.SampledFrom([]KPAForm{KPADocument, KPAKnative}).Draw(t, "kpa.form"),
		Utilization: rapid.SampledFrom([]int{30, 70, 100}).Draw(t, "utilization"),
		GrowPercent: rapid.SampledFrom([]int{101, 150, mostPercent}).Draw(t, "grow"),
		Activation:  rapid.SampledFrom([]int{1, 1, 3}).Draw(t, "activation"),
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// The invariants of Decide that are not of the equation: I1, I3, I6, I8, I12 to I15, I17.
func TestKPAKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, owned, now := anyKPA(t), rapid.IntRange(0, 120).Draw(t, "owned"), rapid.IntRange(0, 1000).Draw(t, "boot")
		s := New(c, owned, time.Duration(now)*time.Second)
		valid, wasValid, lastRelease := 0, false, -1<<30
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			passes, o := rapid.SampledFrom([]int{0, 1, 1, 1, 2, 5, 31, 100}).Draw(t, "passes"), anyObservation(t, 1)
			if now += passes; wasValid && o.Valid {
				valid += passes
			}
			wasValid = o.Valid
			before, at := s, time.Duration(now)*time.Second
			var d Decision
			s, d = c.Decide(before, at, o)
			switch need := c.batchesFor(s.Demand, o); {
			case d.Target < o.Assigned || d.Target > max(before.Target, o.Most, o.Assigned):
				t.Fatalf("I1: target %d after %d, of at most %d, for %d assigned", d.Target, before.Target, o.Most, o.Assigned)
			case !o.Exhausted && d.Target < need:
				t.Fatalf("I3: target %d, pods need %d now", d.Target, need)
			case !o.Exhausted && d.Burst && d.Target < min(before.Target, o.Most):
				t.Fatalf("I6: target %d after %d in a burst", d.Target, before.Target)
			case d.Target < before.Target && (!o.Valid || valid < seconds(c.Stable)):
				t.Fatalf("I12, I14: target %d after %d, readable %t, for %d s", d.Target, before.Target, o.Valid, valid)
			case d.Target < before.Target && !o.Exhausted && now-lastRelease < seconds(c.ReleaseInterval):
				t.Fatalf("I15: target %d after %d, %d s after the last release", d.Target, before.Target, now-lastRelease)
			}
			if d.Target < before.Target {
				lastRelease = now
			}
			text, err := json.Marshal(s)
			var read State
			if err != nil || json.Unmarshal(text, &read) != nil {
				t.Fatalf("%s: %v", text, err)
			}
			again, second := c.Decide(read, at, o)
			if diff := cmp.Diff(s, again); diff != "" || second.Target != d.Target {
				t.Fatalf("I8, I17: target %d instead of %d, state (-want +got):\n%s", second.Target, d.Target, diff)
			}
		}
	})
}

// batchesFor returns the whole batches for a demand.
func (c Config) batchesFor(demand int, o Observation) int {
	c.MinFree = 0
	return c.Need(demand, o.Primaries, o.Most)
}

// A pool that another strategy has sized goes on from there when the file names this one.
func TestAChangeOfTheStrategyReleasesNothingAtOnce(t *testing.T) {
	c := Default()
	n := newNode(c, 96)
	for now := 1; now <= 500; now++ {
		n.tick(now, sees(60))
	}
	n.Config.Strategy = KPA
	for now := 501; now <= 600; now++ {
		if d := n.tick(now, sees(2)); d.Target < 80 {
			t.Fatalf("at %d, within the delay: target %d", now, d.Target)
		}
	}
}
