package kpa

import (
	"math"
	"time"
)

// delaySlot is the granularity of the scale-down delay.
const delaySlot = 2 * time.Second

// Result is what an autoscaler recommends.
type Result struct {
	Desired int  // pods
	Valid   bool // if not, there was nothing to judge by: keep what there is
	Burst   bool // burst mode was on
}

// Autoscaler recommends a number of pods, from averages over two windows. It begins
// in burst mode, so it does not shrink for the first stable window, except that it
// knows no pods yet to hold on to: the first calls may.
type Autoscaler struct {
	Config    Config        `json:"config"`
	InBurst   bool          `json:"inBurst"`
	OverAt    time.Duration `json:"overAt"`          // when the load last was a burst
	HighWater int           `json:"highWater"`       // most pods desired in this burst
	Delay     *Peak         `json:"delay,omitempty"` // nil: none
}

// NewAutoscaler returns one that starts at a time, or what is wrong with c.
func NewAutoscaler(c Config, now time.Duration) (*Autoscaler, error) {
	a := &Autoscaler{InBurst: true, OverAt: now}
	return a, a.Update(c)
}

// Update takes over another configuration. The burst goes on. A delay starts anew,
// without the past, even if it was the same before; a delay of 0 leaves the
// former one at work.
func (a *Autoscaler) Update(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	a.Config = c
	if c.ScaleDownDelay > 0 {
		a.Delay = NewPeak(c.ScaleDownDelay, delaySlot)
	}
	return nil
}

// Scale recommends from the averages of the stable and the burst window and the
// number of pods that are ready. In this order: what the metric asks for, the rate
// limits, activation, burst mode, delay, bounds.
func (a *Autoscaler) Scale(now time.Duration, stable, burst float64, ready int) Result {
	ready = max(ready, 1)
	if stable < 0 || burst < 0 {
		return Result{}
	}
	rawStable, rawBurst := a.raw(stable, ready), a.raw(burst, ready)
	a.judgeBurst(now, float64(rawBurst)/float64(ready))
	desired := a.limit(rawStable, ready)
	if a.InBurst {
		a.HighWater = max(a.HighWater, desired, a.limit(rawBurst, ready))
		desired = a.HighWater
	}
	if a.Delay != nil {
		desired = a.Delay.Record(now, desired)
	}
	return Result{Desired: bound(desired, a.Config.MinScale, a.Config.MaxScale), Valid: true, Burst: a.InBurst}
}

// raw returns the pods that a value of the metric asks for. No number asks for
// none.
func (a *Autoscaler) raw(value float64, ready int) int {
	if a.Config.TotalTargetValue > 0 {
		return count(math.Ceil(float64(ready) * value / a.Config.TotalTargetValue))
	}
	return count(math.Ceil(value / a.Config.TargetValue))
}

// limit applies the rate limits and, after and so above them, activation.
func (a *Autoscaler) limit(raw, ready int) int {
	up := count(math.Ceil(a.Config.MaxScaleUpRate * float64(ready)))
	down := count(math.Floor(float64(ready) / a.Config.MaxScaleDownRate))
	desired := min(max(raw, down), up)
	if raw > 0 {
		desired = max(desired, a.Config.ActivationScale)
	}
	return desired
}

// judgeBurst begins a burst, goes on with it, or ends it more than a stable window
// after the load last was one.
func (a *Autoscaler) judgeBurst(now time.Duration, ratio float64) {
	switch {
	case ratio >= a.Config.BurstThreshold:
		a.InBurst, a.OverAt = true, now
	case a.InBurst && a.OverAt+a.Config.StableWindow < now:
		a.InBurst, a.HighWater = false, 0
	}
}

// bound applies a least and a most, where they are over 0; the most counts more.
func bound(n, least, most int) int {
	n = max(n, least)
	if most > 0 {
		n = min(n, most)
	}
	return n
}

// count makes a number of pods out of a float: no number is 0, and what is too
// large is the largest.
func count(v float64) int {
	switch {
	case math.IsNaN(v) || v <= 0:
		return 0
	case v >= math.MaxInt32:
		return math.MaxInt32
	}
	return int(v)
}
