// Package kpa is the autoscaler of sources/kpa-algorithms.md in full: sliding
// windows, burst mode, rate limits, scale-down delay, activation and bounds. It is
// pure: the time is an argument, and each type is its own state and encodes to
// JSON and back without loss.
//
// It is here to compare with, and for what scales pods. A pool is sized by package
// scale, which takes over the two pieces of it that hold for addresses, the mean
// and the maximum over a window, in whole numbers and one sample a second. Results
// are those of the implementation that the document describes, its rounding in
// floating point included, but where that panics or overflows: such settings are
// refused here. The tests say where document and implementation disagree and which
// of them is right for a pool.
package kpa

import (
	"fmt"
	"math"
	"time"
)

// Window averages what was recorded over a span of time, in buckets. What falls
// into one bucket adds up; a bucket between two others in which nothing was
// recorded counts as 0; before the first one there is nothing. Times are since any
// fixed moment.
type Window struct {
	Span        time.Duration `json:"span"`
	Granularity time.Duration `json:"granularity"` // of a bucket
	// Weighted makes newer buckets count more. The weights neither add up to 1 nor
	// to the same sum while the window fills, so it reads low at first.
	Weighted bool `json:"weighted,omitempty"`

	Buckets []float64 `json:"buckets"` // a ring, by number of the bucket
	First   int       `json:"first"`   // number of the first bucket recorded
	Last    int       `json:"last"`    // and of the newest
	Begun   bool      `json:"begun"`   // something was recorded
}

// NewWindow returns an empty window. Buckets are of whole seconds; their number is
// what it takes to cover the span.
func NewWindow(span, granularity time.Duration) (*Window, error) {
	if granularity < time.Second || granularity%time.Second != 0 {
		return nil, fmt.Errorf("granularity: %s: must be whole seconds, at least one", granularity)
	}
	if span < granularity {
		return nil, fmt.Errorf("window: %s: must be at least its granularity of %s", span, granularity)
	}
	return &Window{Span: span, Granularity: granularity, Buckets: make([]float64, cover(span, granularity))}, nil
}

// Record adds a value to the bucket of a time. What is older than the window, or no
// finite number, is left out.
func (w *Window) Record(t time.Duration, v float64) {
	b := w.number(t)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	switch behind := w.ago(w.Last, b); {
	case !w.Begun || w.ago(b, w.Last) >= w.Span:
		clear(w.Buckets)
		w.First, w.Last, w.Begun = b, b, true
	case b > w.Last:
		for skipped := w.Last + 1; skipped <= b; skipped++ {
			*w.bucket(skipped) = 0
		}
		w.Last = b
	case behind >= w.Span:
		return
	default:
		w.First = min(w.First, b)
	}
	*w.bucket(b) += v
}

// Average returns the average at a time. Silence since the last value shortens the
// window, so the average may rise while low values leave it; after a whole window
// of silence it is 0.
func (w *Window) Average(t time.Duration) float64 {
	b := max(w.number(t), w.Last)
	if !w.Begun || w.ago(b, w.Last) >= w.Span {
		return 0
	}
	if w.Weighted {
		return w.weigh(b)
	}
	sum, size := 0.0, len(w.Buckets)-(b-w.Last)
	for n := w.Last - size + 1; n <= w.Last; n++ {
		sum += *w.bucket(n)
	}
	return math.Round(sum/float64(min(w.Last-w.First+1, size))*1e6) / 1e6
}

// weigh sums up the buckets, each with a weight that falls by the same factor from
// bucket to bucket: to a ten-thousandth over the window, but at least by a fifth.
func (w *Window) weigh(b int) float64 {
	share := math.Max(1-math.Pow(0.0001, 1/float64(len(w.Buckets))), 0.2)
	sum := 0.0
	for n := b - len(w.Buckets) + 1; n <= w.Last; n++ {
		sum += *w.bucket(n) * share * math.Pow(1-share, float64(b-n))
	}
	return sum
}

// Empty tells whether nothing was recorded for longer than the window. After
// exactly a window of silence the average is 0 and valid.
func (w *Window) Empty(t time.Duration) bool { return !w.Begun || w.ago(w.number(t), w.Last) > w.Span }

// Resize changes the span and keeps the newest buckets. From then on the window
// counts as filled, as if zeros had been recorded before the first value.
func (w *Window) Resize(span time.Duration) error {
	next, err := NewWindow(span, w.Granularity)
	if err != nil {
		return err
	}
	next.Weighted, next.Last, next.Begun = w.Weighted, w.Last, w.Begun
	next.First = w.Last - len(w.Buckets) + 1
	for n := w.Last - min(len(w.Buckets), len(next.Buckets)) + 1; w.Begun && n <= w.Last; n++ {
		*next.bucket(n) = *w.bucket(n)
	}
	*w = *next
	return nil
}

// number returns the number of the bucket of a time.
func (w *Window) number(t time.Duration) int { return int(t / w.Granularity) }

func (w *Window) bucket(number int) *float64 {
	size := len(w.Buckets)
	return &w.Buckets[(number%size+size)%size]
}

// ago returns the time between two buckets.
func (w *Window) ago(b, before int) time.Duration { return time.Duration(b-before) * w.Granularity }

// cover returns how many steps it takes to cover a span.
func cover(span, step time.Duration) int { return int((span + step - 1) / step) }
