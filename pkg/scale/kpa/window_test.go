package kpa

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const sec = time.Second

func linear(t testing.TB, span time.Duration) *Window {
	t.Helper()
	w, err := NewWindow(span, sec)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func weighted(t testing.TB, span time.Duration) *Window {
	w := linear(t, span)
	w.Weighted = true
	return w
}

// look is what a window reads at a second.
type look struct {
	at    int
	want  float64
	empty bool
}

func (w *Window) holds(t *testing.T, id string, looks ...look) {
	t.Helper()
	for _, l := range looks {
		at := time.Duration(l.at) * sec
		if got := w.Average(at); math.Abs(got-l.want) > 5e-7 || w.Empty(at) != l.empty {
			t.Errorf("%s: at %d: %v, empty %t; want %v, %t", id, l.at, got, w.Empty(at), l.want, l.empty)
		}
	}
}

// The document averages over the buckets that are filled. That is what a window
// does while it fills; but a second between two others in which nothing was
// recorded counts as 0 (K06, K07), which for a pool is wrong: nobody said that the
// pods were gone. Decide lets the last demand hold.
func TestALinearWindowFollowsTheVectors(t *testing.T) {
	w := linear(t, 5*sec)
	w.Record(0, 1)
	w.holds(t, "K01, K02", look{0, 1, false}, look{1, 1, false}, look{4, 1, false}, look{5, 0, false}, look{6, 0, true})

	w = linear(t, 5*sec)
	for i := range 5 {
		w.Record(time.Duration(i)*sec, float64(i+1))
	}
	w.holds(t, "K03", look{4, 3, false}, look{5, 3.5, false}, look{6, 4, false}, look{7, 4.5, false}, look{8, 5, false},
		look{9, 0, false}, look{10, 0, true})
	w.Record(6*sec, 91)
	w.holds(t, "K04", look{6, 20.6, false})

	// For a pool wrong as well: two looks at ten pods are not twenty. Decide takes
	// the highest of a second.
	w = linear(t, 5*sec)
	w.Record(0, 10)
	w.Record(sec/2, 10)
	w.holds(t, "K05", look{0, 20, false})

	w = linear(t, 60*sec)
	w.Record(0, 10)
	w.Record(5*sec, 10)
	w.holds(t, "K06", look{5, 3.333333, false})

	w = linear(t, 60*sec)
	for i := 0; i < 60; i += 2 {
		w.Record(time.Duration(i)*sec, 30)
	}
	w.holds(t, "K07", look{58, 15.254237, false})

	w = linear(t, 60*sec)
	for i := range 5 {
		w.Record(time.Duration(i)*sec, float64(280+10*i))
	}
	w.holds(t, "K08, the document's example", look{4, 300, false}, look{14, 300, false}, look{59, 300, false},
		look{60, 305, false}, look{62, 315, false}, look{63, 320, false}, look{64, 0, false})

	w = linear(t, 5*sec)
	w.Record(60*sec, 1984)
	w.Record(57*sec, 4)
	w.holds(t, "K09", look{60, 497, false})
	w.Record(55*sec, 100)
	w.holds(t, "K10", look{60, 497, false})

	w = linear(t, 6*sec)
	for i := range 6 {
		w.Record(time.Duration(i)*sec, 10)
	}
	for i, want := range []float64{15, 20, 25, 30, 35, 40} {
		w.Record(time.Duration(6+i)*sec, 40)
		w.holds(t, "K11", look{6 + i, want, false})
	}

	w = linear(t, 1500*time.Millisecond)
	w.Record(0, 5)
	w.Record(sec, 7)
	w.holds(t, "K12", look{1, 6, false}, look{2, 7, false}, look{3, 0, true})
}

// K13: a granularity of half a second divides by zero there, at the first value. It
// is refused here, as all that is not whole seconds.
func TestAWindowRefusesWhatItCantDivide(t *testing.T) {
	for _, tt := range []struct {
		span, granularity time.Duration
		want              string
	}{
		{sec / 2, sec, "window: 500ms: must be at least its granularity of 1s"},
		{5 * sec, 0, "granularity: 0s: must be whole seconds, at least one"},
		{5 * sec, sec / 2, "granularity: 500ms: must be whole seconds, at least one"},
		{5 * sec, -sec, "granularity: -1s: must be whole seconds, at least one"},
	} {
		if _, err := NewWindow(tt.span, tt.granularity); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	if err := linear(t, 5*sec).Resize(0); err == nil {
		t.Error("a window of nothing is accepted")
	}
}

// K14: what was never recorded counts as zeros once the window was resized, so its
// average falls to a twelfth or a sixth. For a pool wrong: a change of settings
// would release addresses. Decide prices the past that there is anew.
func TestAResizedWindowCountsAsFilled(t *testing.T) {
	for span, want := range map[time.Duration]float64{120 * sec: 8.333333, 30 * sec: 16.666667} {
		w := linear(t, 60*sec)
		for i := range 5 {
			w.Record(time.Duration(i)*sec, 100)
		}
		w.holds(t, "K14", look{4, 100, false})
		if err := w.Resize(span); err != nil {
			t.Fatal(err)
		}
		w.holds(t, fmt.Sprint("K14: to ", span), look{4, want, false})
	}
	w := linear(t, 60*sec)
	if err := w.Resize(30 * sec); err != nil {
		t.Fatal(err)
	}
	w.holds(t, "an empty one stays empty", look{0, 0, true})
}

// The document's formula would divide by the sum of the weights. The implementation
// does not, so a constant 100 reads 20 at first: for a pool wrong, and the reason
// why Decide takes the linear mean.
func TestAWeightedWindowFollowsTheVectors(t *testing.T) {
	for _, tt := range []struct {
		span time.Duration
		want map[int]float64 // by number of values of 100
	}{
		{60 * sec, map[int]float64{1: 20, 2: 36, 3: 48.8, 10: 89.262582, 60: 99.999847}},
		{6 * sec, map[int]float64{1: 78.455653, 2: 95.358411, 3: 99, 4: 99.784557, 5: 99.953584, 6: 99.99}},
	} {
		w := weighted(t, tt.span)
		w.holds(t, "K15", look{0, 0, true})
		for i := range 60 {
			w.Record(time.Duration(i)*sec, 100)
			if want, ok := tt.want[i+1]; ok {
				w.holds(t, "K15", look{i, want, false})
			}
		}
		if tt.span == 60*sec {
			w.holds(t, "K15: a silent second", look{60, 79.999847, false})
		}
	}
	w := weighted(t, 5*sec)
	for i := range 6 {
		w.Record(time.Duration(i)*sec, float64(i+1))
	}
	if got := w.Average(5 * sec); math.Abs(got-5.812) > 5e-4 {
		t.Errorf("K16: %v, want 5.812", got)
	}
}

// The coefficient itself; the tolerance of its test there is 0.9999, which no value
// fails.
func TestTheWeightOfTheNewestBucket(t *testing.T) {
	for buckets, want := range map[int]float64{5: .841511, 6: .784557, 10: .601893, 40: .205672, 41: .201198, 42: .2, 600: .2} {
		w := weighted(t, time.Duration(buckets)*sec)
		w.Record(0, 1)
		w.holds(t, fmt.Sprint(buckets, " buckets"), look{0, want, false})
	}
}

func TestAWindowLeavesOutWhatIsNoNumber(t *testing.T) {
	w := linear(t, 5*sec)
	w.Record(0, 10)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		w.Record(sec, v)
	}
	w.holds(t, "no number", look{0, 10, false})
}

// A ring is checked against a map of seconds.
func TestALinearWindowIsTheMeanOfItsSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "span")
		w, err := NewWindow(time.Duration(size)*sec, sec)
		if err != nil {
			t.Fatal(err)
		}
		recorded := map[int]float64{}
		first, last := 0, -1
		for range rapid.IntRange(1, 40).Draw(t, "values") {
			at := max(0, last+rapid.IntRange(-4, 15).Draw(t, "passes"))
			v := float64(rapid.IntRange(0, 50).Draw(t, "value"))
			w.Record(time.Duration(at)*sec, v)
			switch {
			case last < 0 || at-last >= size:
				clear(recorded)
				first, last = at, at
			case at > last-size:
				first, last = min(first, at), max(last, at)
			default:
				continue
			}
			recorded[at] += v
			now := last + rapid.IntRange(-2, size+2).Draw(t, "later")
			if got, want := w.Average(time.Duration(now)*sec), meanOf(recorded, first, last, size, max(now, last)); got != want {
				t.Fatalf("at %d: %v, want %v", now, got, want)
			}
		}
	})
}

func meanOf(recorded map[int]float64, first, last, size, now int) float64 {
	from, sum := now-size+1, 0.0
	for s := from; s <= last; s++ {
		sum += recorded[s]
	}
	if from > last {
		return 0
	}
	return math.Round(sum/float64(min(last-first+1, last-from+1))*1e6) / 1e6
}

func TestThePeakFollowsTheVectors(t *testing.T) {
	for _, tt := range []struct {
		name               string
		at, values, wanted []int
	}{
		{"five slots", nil, []int{5, 6, 5, 5, 5, 5, 5}, []int{5, 6, 6, 6, 6, 6, 5}},
		{"five slots, up and down", nil, []int{5, 8, 5, 7, 5, 5, 1, 4, 4, 4, 4, 9, 3, 4, 2, 1, 0},
			[]int{5, 8, 8, 8, 8, 8, 7, 7, 5, 5, 4, 9, 9, 9, 9, 9, 4}},
		{"one slot", []int{0, 0, 0, 0}, []int{7, 6, 5, 4}, []int{7, 7, 7, 7}},
		{"a gap", []int{0, 1, 2, 6}, []int{6, 5, 2, 1}, []int{6, 6, 6, 2}},
		{"back in time", []int{4, 2, 9}, []int{3, 5, 1}, []int{3, 5, 1}},
	} {
		p := NewPeak(5*sec, sec)
		var got []int
		for i, v := range tt.values {
			if tt.at != nil {
				i = tt.at[i]
			}
			got = append(got, p.Record(time.Duration(i)*sec, v))
		}
		if !slices.Equal(got, tt.wanted) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.wanted)
		}
	}
	p := NewPeak(30*sec, delaySlot)
	at, values := []int{0, 4, 10, 20, 33, 34, 40, 49, 50}, []int{5, 8, 4, 6, 2, 2, 2, 2, 2}
	var got []int
	for i, v := range values {
		got = append(got, p.Record(time.Duration(at[i])*sec, v))
	}
	if diff := cmp.Diff([]int{5, 8, 8, 8, 8, 6, 6, 6, 2}, got); diff != "" {
		t.Errorf("K17 (-want +got):\n%s", diff)
	}
}

// K18: in slots of two seconds a value may leave up to two seconds early. Decide
// counts seconds.
func TestADelayEndsWithItsSlot(t *testing.T) {
	for _, tt := range []struct {
		delay       time.Duration
		spike, gone int
	}{{sec, 0, 2}, {5 * sec, 0, 6}, {30 * sec, 0, 30}, {30 * sec, 1, 30}, {31 * sec, 0, 32}} {
		p := NewPeak(tt.delay, delaySlot)
		p.Record(time.Duration(tt.spike)*sec, 9)
		now := tt.spike
		for p.Record(time.Duration(now)*sec, 1) == 9 {
			now++
		}
		if now != tt.gone {
			t.Errorf("delay %s: a spike at %d is gone at %d, want %d", tt.delay, tt.spike, now, tt.gone)
		}
	}
}

func TestThePeakIsTheHighestOfItsSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, now := rapid.IntRange(1, 20).Draw(t, "slots"), 0
		p := NewPeak(time.Duration(size)*sec, sec)
		var slots, values []int
		for range rapid.IntRange(1, 60).Draw(t, "values") {
			now += rapid.IntRange(0, 5).Draw(t, "passes")
			slots, values = append(slots, now), append(values, rapid.IntRange(0, 9).Draw(t, "value"))
			want := 0
			for i, slot := range slots {
				if slot > now-size {
					want = max(want, values[i])
				}
			}
			if got := p.Record(time.Duration(now)*sec, values[len(values)-1]); got != want {
				t.Fatalf("at %d: %d, want %d", now, got, want)
			}
		}
	})
}
