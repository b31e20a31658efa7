package web

import (
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

// What is kept of the past for the page, some 20 KB however busy the node is.
const (
	sampleTime = 15 * time.Second
	kept       = time.Hour
	mostSteps  = 30
)

// history is the last hour of a node, and its last steps. Its methods may be called from several goroutines.
type history struct {
	mu      sync.Mutex
	samples []sizeSample // the oldest first
	steps   []doneStep
}

// sizeSample is what a node's sizes were within a sampleTime: the highest, which a burst that was over at its end had
// too, and the last, which hold until the next sizeSample.
type sizeSample struct {
	at        time.Time
	high, end sizes
}

// sizes are in slots. need is -1 where the node's limits are not known.
type sizes struct{ demand, need, target int }

// doneStep is a step, and how many times in a row it was done.
type doneStep struct {
	status.Step
	at    time.Time // the last time
	times int
}

func (h *history) noteSizes(s status.Status, now time.Time) {
	is := sizes{s.Demand, s.Need, s.Target}
	if !s.Limited() {
		is.need = -1
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := now.Truncate(sampleTime)
	if n := len(h.samples); n > 0 && !h.samples[n-1].at.Before(at) { // a clock that was set back lengthens the last
		last := &h.samples[n-1]
		last.end, last.high = is, sizes{max(last.high.demand, is.demand), max(last.high.need, is.need), max(last.high.target, is.target)}
		return
	}
	h.samples = append(h.samples, sizeSample{at, is, is})
	h.forget(now)
}

// forget drops what is older than an hour, but for the sizeSample that tells how the hour began.
func (h *history) forget(now time.Time) {
	from := 0
	for from+1 < len(h.samples) && !h.samples[from+1].at.After(now.Add(-kept)) {
		from++
	}
	h.samples = append(h.samples[:0], h.samples[from:]...)
}

func (h *history) noteStep(s status.Step, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.steps); n > 0 && h.steps[n-1].Step == s {
		h.steps[n-1].at = now
		h.steps[n-1].times++
		return
	}
	h.steps = append(h.steps, doneStep{s, now, 1})
	if more := len(h.steps) - mostSteps; more > 0 {
		h.steps = append(h.steps[:0], h.steps[more:]...)
	}
}

// copied returns what is known, for who reads it later.
func (h *history) copied() ([]sizeSample, []doneStep) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]sizeSample(nil), h.samples...), append([]doneStep(nil), h.steps...)
}
