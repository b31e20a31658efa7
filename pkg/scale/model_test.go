package scale

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the stabiliser in its plainest words: a list of seconds, nothing that
// is fast. Decide must do what it does.
type model struct {
	c             Config
	began         bool
	now           int
	ring          []int // demand of each second, the newest last
	demand        int
	wasValid      bool
	validSeconds  int
	inBurst       bool
	lastOver      int
	highWater     int
	target        int
	lastRelease   int
	peak, average int // of the last decision, for tests
}

func newModel(c Config, owned, now int) *model {
	return &model{c: c, now: now, inBurst: true, lastOver: now, highWater: owned, target: owned, lastRelease: now}
}

func (m *model) sample(t int, o Observation) {
	demand := o.Demand
	if !o.Valid {
		demand = m.demand
	}
	demand = max(demand, o.Assigned)
	if m.wasValid && o.Valid {
		m.validSeconds += t - m.now
	}
	for s := m.now + 1; s < t && m.began; s++ {
		m.ring = append(m.ring, m.demand)
	}
	if m.began && t == m.now {
		m.ring[len(m.ring)-1] = max(m.ring[len(m.ring)-1], demand)
	} else {
		m.ring = append(m.ring, demand)
	}
	m.began, m.now, m.demand, m.wasValid = true, t, demand, o.Valid
}

func (m *model) last(d time.Duration) []int {
	return m.ring[max(0, len(m.ring)-int(d/time.Second)):]
}

func mean(list []int) int {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return (sum + len(list) - 1) / len(list)
}

func (m *model) decide(now int, o Observation) int {
	m.sample(max(now, m.now), o)
	p := 0
	if m.c.CountPrimaries {
		p = o.Primaries
	}
	need := func(demand int) int {
		n := exact(m.c.Batch, m.c.MinFree, demand+p) - p
		if m.c.Form == Document {
			n = exact(m.c.Batch, m.c.MinFree, demand) - p
		}
		return max(0, min(max(n, m.c.MinPool), o.Most))
	}
	m.average, m.peak = mean(m.last(m.c.Stable)), slices.Max(append(m.last(m.c.Delay), m.demand))
	n := need(m.demand)
	base := max(n, need(m.average), need(m.peak))
	stable := int(m.c.Stable / time.Second)
	if 100*need(mean(m.last(m.c.BurstWindow))) >= m.c.BurstPercent*max(o.Owned, m.c.Batch) {
		if !m.inBurst {
			m.highWater = max(base, m.target)
		}
		m.inBurst, m.lastOver = true, m.now
	} else if m.now-m.lastOver > stable {
		m.inBurst, m.highWater = false, 0
	}
	before, target := m.target, base
	boot := !o.Valid || m.validSeconds < stable
	switch {
	case o.Exhausted:
		target = min(o.Most, max(m.demand, slices.Max(append(m.last(m.c.ExhaustedDelay), 0)))+m.c.ExhaustedSpare)
		if boot {
			target = max(target, before)
		}
		n = 0
	case m.inBurst:
		m.highWater = max(m.highWater, base, min(before, o.Most))
		target = min(m.highWater, o.Most)
	}
	if target < before && !o.Exhausted {
		target = m.hold(target, p, boot)
	}
	m.target = max(target, n, o.Assigned)
	if m.inBurst && !o.Exhausted { // as the next call would, or I8 did not hold
		m.highWater = max(m.highWater, min(m.target, o.Most))
	}
	if m.target < before {
		m.lastRelease = m.now
	}
	return m.target
}

// hold is the last steps' limit on what is released.
func (m *model) hold(target, p int, boot bool) int {
	if boot || m.now-m.lastRelease < int(m.c.ReleaseInterval/time.Second) {
		return m.target
	}
	half, below := 0, m.target-1
	for ; half*m.c.ShrinkPercent < 100*m.target || (half+p)%m.c.Batch != 0; half++ {
	}
	for ; (below+p)%m.c.Batch != 0; below-- {
	}
	return max(target, min(half, below))
}

func anyConfig(t *rapid.T) Config {
	wait := func(name string, low, high int) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, name)) * time.Second
	}
	c := Config{
		Form:           rapid.SampledFrom([]Form{Safe, Safe, Document}).Draw(t, "form"),
		CountPrimaries: rapid.Bool().Draw(t, "count primaries"),
		Batch:          rapid.SampledFrom([]int{1, 3, 8, 16, 16, 30}).Draw(t, "batch"),
		MinFree:        rapid.SampledFrom([]int{0, 14, 50, 50, 100, 250}).Draw(t, "minFree"),
		MinPool:        rapid.SampledFrom([]int{0, 0, 5, 32}).Draw(t, "minPool"),
		Stable:         wait("stable", 5, 70), Delay: wait("delay", 0, 130),
		BurstPercent:    rapid.IntRange(101, 400).Draw(t, "burstPercent"),
		ShrinkPercent:   rapid.IntRange(101, 400).Draw(t, "shrinkPercent"),
		ReleaseInterval: wait("releaseInterval", 1, 40),
		ExhaustedSpare:  rapid.IntRange(0, 3).Draw(t, "exhaustedSpare"), ExhaustedDelay: wait("exhaustedDelay", 0, 20),
	}
	c.MaxFree = c.MinFree + 100
	c.BurstWindow = wait("burstWindow", 1, seconds(c.Stable))
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// anyObservation is one of a node with fixed limits, so that alignment can be told.
func anyObservation(t *rapid.T, primaries int) Observation {
	often := rapid.IntRange(0, 9)
	o := Observation{
		Demand: rapid.IntRange(0, 120).Draw(t, "demand"), Owned: rapid.IntRange(0, 130).Draw(t, "owned"),
		Primaries: primaries, Most: 100, Valid: often.Draw(t, "valid") > 0, Exhausted: often.Draw(t, "exhausted") == 0,
	}
	if often.Draw(t, "assigned as demanded") > 4 {
		o.Assigned = min(o.Demand, o.Owned)
	}
	if often.Draw(t, "few") > 5 {
		o.Demand /= 8
	}
	return o
}

func TestDecideDoesWhatItsModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := anyConfig(t), rapid.IntRange(0, 1000).Draw(t, "boot")
		owned, primaries := rapid.IntRange(0, 120).Draw(t, "owned"), rapid.IntRange(0, 5).Draw(t, "primaries")
		s, m := New(c, owned, time.Duration(now)*time.Second), newModel(c, owned, now)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]int{0, 1, 1, 2, 7, 31, 200, -3}).Draw(t, "passes")
			o := anyObservation(t, primaries)
			o.Most = rapid.SampledFrom([]int{100, 100, 100, 40, 0}).Draw(t, "most")
			var d Decision
			s, d = c.Decide(s, time.Duration(now)*time.Second, o)
			want := m.decide(now, o)
			if d.Target != want || d.Burst != m.inBurst || s.HighWater != m.highWater {
				t.Fatalf("at %d: target %d, burst %t to %d; the model has %d, %t, %d", now, d.Target, d.Burst, s.HighWater, want, m.inBurst, m.highWater)
			}
		}
	})
}
