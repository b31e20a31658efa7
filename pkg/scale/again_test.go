package scale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Who is asleep until Again misses nothing: neither a target nor a reason, nor does
// the state know the difference.
func TestSleepingUntilAgainIsLikeAskingEverySecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, owned := anyConfig(t), rapid.IntRange(0, 120).Draw(t, "owned")
		if rapid.Bool().Draw(t, "kpa") {
			c = anyKPA(t)
		}
		asking, sleeping := New(c, owned, 0), New(c, owned, 0)
		var held Decision
		now, calls := 0, 0
		for range rapid.IntRange(1, 12).Draw(t, "observations") {
			o := anyObservation(t, 1)
			o.Room, o.Cooling = rapid.SampledFrom([]int{0, 120}).Draw(t, "room"), rapid.IntRange(0, o.Demand).Draw(t, "cooling")
			lasts := rapid.SampledFrom([]int{1, 2, 9, 70, 300}).Draw(t, "lasts")
			for end, first := now+lasts, true; now < end; now++ {
				at := time.Duration(now) * time.Second
				var want Decision
				asking, want = c.Decide(asking, at, o)
				if first || held.Again != 0 && held.Again <= at {
					sleeping, held = c.Decide(sleeping, at, o)
					first = false
					calls++
				}
				got := held
				want.Again, got.Again = 0, 0
				if got.Reason == Up || got.Reason == Release { // they name a moment
					got.Reason = want.Reason
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("at %d (-asking every second +sleeping):\n%s", now, diff)
				}
			}
			at := time.Duration(now-1) * time.Second
			asking, _ = c.Decide(asking, at, o)
			sleeping, held = c.Decide(sleeping, at, o)
			if diff := cmp.Diff(asking, sleeping); diff != "" {
				t.Fatalf("at %d the states differ (-asking +sleeping):\n%s", now, diff)
			}
		}
	})
}

func TestAPoolAtRestIsLeftAlone(t *testing.T) {
	c := Default()
	s := New(c, 16, 0)
	o := Observation{Demand: 5, Owned: 16, Assigned: 5, Most: 250, Valid: true}
	now, calls := time.Duration(0), 0
	for ; calls < 100; calls++ {
		var d Decision
		if s, d = c.Decide(s, now, o); d.Again == 0 {
			break
		}
		now = d.Again
	}
	if calls > 3 || now > 61*time.Second {
		t.Errorf("%d calls until %s before it is at rest", calls, now)
	}
}

func TestADrainWakesForItsStepsOnly(t *testing.T) {
	c := Default()
	n := newNode(c, 256)
	for now := 1; now <= 200; now++ {
		n.tick(now, sees(240))
	}
	var wakes []int
	for now := 201; now != 0; {
		d := n.tick(now, sees(0))
		now = int(d.Again / time.Second)
		wakes = append(wakes, now)
	}
	if diff := cmp.Diff([]int{320, 350, 380, 410, 0}, wakes); diff != "" {
		t.Errorf("wakes (-want +got):\n%s", diff)
	}
}

// A peak that comes twice leaves the window once, with the second.
func TestAPeakThatComesAgainPutsOffTheWake(t *testing.T) {
	n := newNode(Default(), 48)
	for now := 1; now < 200; now++ {
		n.tick(now, sees(from(now, 151, from(now, 150, from(now, 101, from(now, 100, 5, 36), 5), 36), 5)))
	}
	if d := n.tick(200, sees(5)); d.Again != 270*time.Second {
		t.Errorf("wakes at %s, want 270 s", d.Again)
	}
}
