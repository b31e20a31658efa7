package scale

import "time"

// again returns when a decision of the strategy Equation can change first while
// nothing new is observed. Its target is the last one by now.
func (z *sizing) again() time.Duration {
	c, s := z.c, z.s
	later := earliest{now: s.Now}
	if z.o.Valid && s.ValidSeconds < seconds(c.Stable) {
		later.at(s.Now + seconds(c.Stable) - s.ValidSeconds)
	}
	if s.Target > z.goal {
		later.at(s.LastRelease + seconds(c.ReleaseInterval))
	}
	if highest, at := s.peak(seconds(c.ExhaustedDelay)); z.o.Exhausted && highest > s.Demand {
		later.at(at + seconds(c.ExhaustedDelay))
	}
	if _, at := s.peak(seconds(c.Delay)); z.delayed > z.need {
		later.at(at + seconds(c.Delay))
	}
	if most, ago := s.Cooling.peak(seconds(c.Delay)); most > s.Cooling.Count {
		later.at(s.Now - ago + seconds(c.Delay))
	}
	if c.Stable > c.Delay { // else the mean is never above the highest demand
		later.in(s.turn(seconds(c.Stable), func(mean int) bool { return z.price(mean) == z.stable }))
	}
	z.againBurst(&later)
	return time.Duration(later.t) * time.Second
}

func (z *sizing) againBurst(later *earliest) {
	s, window := z.s, seconds(z.c.BurstWindow)
	if z.over(s.mean(window)) {
		later.in(1) // each such second puts off the burst's end
		return
	}
	later.in(s.turn(window, func(mean int) bool { return !z.over(mean) }))
	if s.InBurst {
		later.at(s.LastOver + seconds(z.c.Stable) + 1)
	}
}

// earliest keeps the first of some seconds that are still to come.
type earliest struct{ now, t int }

func (e *earliest) at(t int) {
	if t > e.now && (e.t == 0 || t < e.t) {
		e.t = t
	}
}

func (e *earliest) in(wait int) { e.at(e.now + wait) }
