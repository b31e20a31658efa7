package scale

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// watched is a pool with what its invariants need to know about the past.
type watched struct {
	c         Config
	s         State
	m         *model // keeps the demands of the past
	now       int
	primaries int
	owned     int // at the start

	highest      int          // demand ever
	most         int          // the largest target that anything ever asked for
	odd          map[int]bool // targets that need not be whole batches
	valid        int          // seconds of readable demand
	wasValid     bool
	lastDecrease int // second of it, before the start if there was none
}

// TestDecideKeepsItsInvariants holds I1 to I6, I8, I9 and I11 to I15, I17.
func TestDecideKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		now, owned := rapid.IntRange(0, 1000).Draw(t, "boot"), rapid.IntRange(0, 120).Draw(t, "owned")
		w := &watched{
			c: c, s: New(c, owned, time.Duration(now)*time.Second), m: newModel(c, owned, now), now: now,
			primaries: rapid.IntRange(0, 5).Draw(t, "primaries"), owned: owned,
			most: owned, odd: map[int]bool{owned: true, c.MinPool: true, 100: true}, lastDecrease: -1 << 30,
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			w.step(t, rapid.SampledFrom([]int{0, 1, 1, 1, 2, 5, 31, 100}).Draw(t, "passes"), anyObservation(t, w.primaries))
		}
	})
}

func (w *watched) step(t *rapid.T, passes int, o Observation) {
	if w.wasValid && o.Valid {
		w.valid += passes
	}
	w.now, w.wasValid = w.now+passes, o.Valid
	before := w.s
	now := time.Duration(w.now) * time.Second
	s, d := w.c.Decide(before, now, o)
	w.m.decide(w.now, o)

	w.enough(t, before.Target, o, d)
	w.notTooMuch(t, o, d)
	w.shrinking(t, before.Target, o, d)
	w.twice(t, s, o, d)
	w.monotone(t, before, o, d)
	if o.Exhausted || d.Target == o.Assigned {
		w.odd[d.Target] = true
	}
	if d.Target < before.Target {
		w.lastDecrease = w.now
	}
	w.s = s
}

// enough: I1, I3, I5, I6, I11.
func (w *watched) enough(t *rapid.T, before int, o Observation, d Decision) {
	if d.Target < o.Assigned {
		t.Fatalf("I1: target %d takes addresses from %d pods", d.Target, o.Assigned)
	}
	if o.Exhausted {
		if least := min(w.m.demand+w.c.ExhaustedSpare, o.Most); d.Target < least {
			t.Fatalf("I1, I11: target %d in an exhausted subnet, %d are needed", d.Target, least)
		}
		return
	}
	if need := w.c.Need(w.m.demand, o.Primaries, o.Most); d.Target < need || d.Need != need {
		t.Fatalf("I1, I3: target %d, need %d; %d are needed", d.Target, d.Need, need)
	}
	if need := w.c.Need(w.m.peak, o.Primaries, o.Most); d.Target < need {
		t.Fatalf("I5: target %d, within the delay %d were needed", d.Target, need)
	}
	if d.Burst && d.Target < min(before, o.Most) {
		t.Fatalf("I6: target %d after %d in a burst", d.Target, before)
	}
}

// notTooMuch: I2, I4.
func (w *watched) notTooMuch(t *rapid.T, o Observation, d Decision) {
	w.highest = max(w.highest, w.m.demand)
	w.most = max(w.most, w.c.Need(w.m.demand, o.Primaries, o.Most), o.Assigned)
	if o.Exhausted {
		w.most = max(w.most, min(w.highest+w.c.ExhaustedSpare, o.Most))
	}
	if d.Target > w.most {
		t.Fatalf("I4: target %d, more than %d was never asked for", d.Target, w.most)
	}
	if whole := (d.Target+w.c.counted(o.Primaries))%w.c.Batch == 0; !whole && !o.Exhausted && !w.odd[d.Target] && d.Target != o.Assigned {
		t.Fatalf("I2: target %d is not of whole batches", d.Target)
	}
}

// shrinking: I12, I14, I15.
func (w *watched) shrinking(t *rapid.T, before int, o Observation, d Decision) {
	if d.Target >= before {
		return
	}
	if !o.Valid {
		t.Fatalf("I12: target %d after %d, and the demand can't be read", d.Target, before)
	}
	if w.valid < seconds(w.c.Stable) {
		t.Fatalf("I14: target %d after %d, after %d readable seconds", d.Target, before, w.valid)
	}
	if o.Exhausted {
		return
	}
	if passed := w.now - w.lastDecrease; passed < seconds(w.c.ReleaseInterval) {
		t.Fatalf("I15: released again after %d s", passed)
	}
	if most := max(w.c.Batch, before-100*before/w.c.ShrinkPercent); before-d.Target > most {
		t.Fatalf("I15: %d released of %d at once, not at most %d", before-d.Target, before, most)
	}
}

// twice: I8, I13 and I17.
func (w *watched) twice(t *rapid.T, s State, o Observation, d Decision) {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read State
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, read); diff != "" {
		t.Fatalf("I17: after encoding and decoding (-want +got):\n%s", diff)
	}
	for name, now := range map[string]int{"I8: the same again": w.now, "I13: earlier": w.now - 40, "I13: before boot": -5} {
		again, second := w.c.Decide(read, time.Duration(now)*time.Second, o)
		if diff := cmp.Diff(s, again); diff != "" || second.Target != d.Target {
			t.Fatalf("%s: target %d instead of %d, state (-want +got):\n%s", name, second.Target, d.Target, diff)
		}
	}
}

// monotone: I9.
func (w *watched) monotone(t *rapid.T, before State, o Observation, d Decision) {
	o.Demand += rapid.IntRange(1, 40).Draw(t, "more demand")
	if _, more := w.c.Decide(before, time.Duration(w.now)*time.Second, o); more.Target < d.Target {
		t.Fatalf("I9: target %d with more demand, %d with less", more.Target, d.Target)
	}
}

// I7: a constant demand ends at its need, in bounded time, and stays.
func TestAConstantDemandComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, owned := anyConfig(t), rapid.IntRange(0, 120).Draw(t, "owned")
		o := Observation{Demand: rapid.IntRange(0, 100).Draw(t, "demand"), Most: 100, Valid: true}
		n := newNode(c, owned)
		steps := owned/c.Batch + 1
		limit := seconds(c.Stable+max(c.Stable, c.Delay)) + steps*seconds(c.ReleaseInterval) + 2
		for now := range limit + 300 {
			d := n.tick(now, second{Observation: o})
			if want := c.Need(o.Demand, 0, o.Most); now > limit && (d.Target != want || d.Again != 0) {
				t.Fatalf("at %d, after the limit of %d: target %d for a need of %d, again at %s", now, limit, d.Target, want, d.Again)
			}
		}
	})
}

// I10: a demand that comes and goes within Delay moves the pool once.
func TestAPeriodWithinTheDelayMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.Delay = max(c.Delay, time.Second)
		period := rapid.SliceOfN(rapid.IntRange(0, 100), 1, seconds(c.Delay)).Draw(t, "period")
		highest := 0
		for _, demand := range period {
			highest = max(highest, demand)
		}
		want := c.Need(highest, 0, 250)
		n := newNode(c, want)
		for now := range 4*len(period) + 300 {
			if d := n.tick(now, sees(period[now%len(period)])); now >= len(period) && d.Target != want {
				t.Fatalf("at %d: target %d, want %d", now, d.Target, want)
			}
		}
	})
}
