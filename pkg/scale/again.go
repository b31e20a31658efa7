package scale

import "time"

// againEquation returns when a decision of the strategy Equation can change first while
// nothing new is observed, a time since boot, 0 for never. It runs after the decision: s.Target
// is the new target. Each of the terms below is when one of the dampers of Decide ends.
func (z *sizing) againEquation() time.Duration {
	c, s := z.c, z.s
	later := earliest{now: s.Now}
	if z.o.Valid && s.ValidSeconds < seconds(c.Stable) {
		later.takeAt(s.Now + seconds(c.Stable) - s.ValidSeconds)
	}
	if s.Target > z.unheld {
		later.takeAt(s.LastRelease + seconds(c.ReleaseInterval))
	}
	if highest, at := s.peak(seconds(c.ExhaustedDelay)); z.o.Exhausted && highest > s.Demand {
		later.takeAt(at + seconds(c.ExhaustedDelay))
	}
	if _, at := s.peak(seconds(c.Delay)); z.delayed > z.need {
		later.takeAt(at + seconds(c.Delay))
	}
	if most, ago := s.Cooling.peak(seconds(c.Delay)); most > s.Cooling.Count {
		later.takeAt(s.Now - ago + seconds(c.Delay))
	}
	if c.Stable > c.Delay { // else the mean is never above the highest demand
		later.takeIn(s.secondsToChange(seconds(c.Stable), func(mean int) bool { return z.needOf(mean) == z.stable }))
	}
	z.againBurst(&later)
	return time.Duration(later.t) * time.Second
}

// againBurst takes into account when a burst begins or ends.
func (z *sizing) againBurst(later *earliest) {
	s, window := z.s, seconds(z.c.BurstWindow)
	if z.isOver(s.mean(window)) {
		later.takeIn(1) // each such second puts off the burst's end
		return
	}
	later.takeIn(s.secondsToChange(window, func(mean int) bool { return !z.isOver(mean) }))
	if s.InBurst {
		later.takeAt(s.LastOver + seconds(z.c.Stable) + 1)
	}
}

// earliest keeps the first of some seconds since boot that are still to come, 0 for none.
type earliest struct{ now, t int }

func (e *earliest) takeAt(t int) {
	if t > e.now && (e.t == 0 || t < e.t) {
		e.t = t
	}
}

func (e *earliest) takeIn(wait int) { e.takeAt(e.now + wait) }
