package scale

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// busy is the state of the longest history there is: another demand each second.
func busy(t testing.TB) (Config, State) {
	c := Default()
	c.Stable, c.BurstWindow, c.Delay = 600*time.Second, 600*time.Second, time.Hour
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(c, 64, 0)
	for now := range 5000 {
		s, _ = c.Decide(s, time.Duration(now)*time.Second, Observation{Demand: now % 7, Owned: 64, Most: 250, Valid: true})
	}
	return c, s
}

func TestDecideLeavesTheStateItWasGiven(t *testing.T) {
	c := Default()
	n := newNode(c, 16)
	for now := 1; now <= 100; now++ {
		n.tick(now, sees(now%5))
	}
	before := n.state
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	decide := func(demand int) State {
		s, _ := c.Decide(before, 101*time.Second, sees(demand).Observation)
		s, _ = c.Decide(s, 102*time.Second, sees(demand+1).Observation)
		return s
	}
	first := decide(40)
	want := first
	want.Past = append([]Run(nil), first.Past...)
	decide(80)
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("deciding again from the same state changed what came of it (-want +got):\n%s", diff)
	}
	if after, _ := json.Marshal(before); string(after) != string(text) {
		t.Errorf("state was %s, is %s", text, after)
	}
}

func TestTheHistoryIsNoLongerThanItsWindows(t *testing.T) {
	c, s := busy(t)
	if seconds := len(s.Past) + s.Newest.Seconds; seconds != 3600 {
		t.Errorf("the busiest state remembers %d seconds, want 3600", seconds)
	}
	s, _ = c.Decide(s, 20*365*24*time.Hour, Observation{Demand: 5, Most: 250, Valid: true})
	if s.Past == nil || len(s.Past) > 1 || s.Past[0].Seconds > 3600 {
		t.Errorf("after twenty years of silence it remembers %v", s.Past)
	}
	s, _ = Default().Decide(s, 21*365*24*time.Hour, Observation{Demand: 5, Most: 250, Valid: true})
	if s.Past != nil || s.Newest.Seconds > 3600 {
		t.Errorf("after another it remembers %v and %v", s.Past, s.Newest)
	}
}

func TestTheEncodedStateIsSmall(t *testing.T) {
	n := newNode(Default(), 16)
	for now := 1; now <= 10_000; now++ {
		n.tick(now, sees(from(now, 9900, 30, 5)))
	}
	text, err := json.Marshal(n.state)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"now":10000,"past":[{"d":30,"s":120}],"newest":{"d":5,"s":101},"demand":5,"valid":true,"validSeconds":60,` +
		`"inBurst":false,"lastOver":1,"highWater":0,"target":48,"lastRelease":0}`
	if string(text) != want {
		t.Errorf("state is %s, want %s", text, want)
	}
}

func TestACallWithNothingNewAllocatesNothing(t *testing.T) {
	c, s := busy(t)
	o := Observation{Demand: s.Demand, Owned: 64, Most: 250, Valid: true}
	now := 6000 * time.Second
	if allocs := testing.AllocsPerRun(100, func() {
		now += time.Second
		s, _ = c.Decide(s, now, o)
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A reload of the configuration keeps the history and prices it again. An
// autoscaler that starts its delay over when it gets longer releases too early, and
// one that keeps the old delay when there is none any more too late.
func TestANewDelayHoldsForWhatWasBefore(t *testing.T) {
	for _, tt := range []struct {
		delay time.Duration
		want  string
	}{
		{300 * time.Second, "1:48 499:32 529:16"}, // 36 pods until 199
		{120 * time.Second, "1:48 319:32 349:16"},
		{0, "1:48 230:32 260:16"}, // the mean of a minute alone
	} {
		n := newNode(Default(), 48)
		got := n.history(600, func(t int) second {
			if t == 230 {
				n.Delay = tt.delay
			}
			return sees(from(t, 200, 36, 1))
		})
		if got != tt.want {
			t.Errorf("with a delay of %s from 230 on: %s, want %s", tt.delay, got, tt.want)
		}
	}
}

func BenchmarkDecideBusiestHistory(b *testing.B) {
	c, s := busy(b)
	o := Observation{Demand: s.Demand, Owned: 64, Most: 250, Valid: true}
	b.ReportAllocs()
	for b.Loop() {
		c.Decide(s, 5000*time.Second, o)
	}
}

func BenchmarkDecideAtRest(b *testing.B) {
	n := newNode(Default(), 16)
	for now := 1; now < 200; now++ {
		n.tick(now, sees(5))
	}
	o := sees(5).Observation
	o.Owned = 16
	b.ReportAllocs()
	for b.Loop() {
		n.Decide(n.state, 200*time.Second, o)
	}
}
