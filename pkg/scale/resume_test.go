package scale

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// follower is a pool that follows its target: what it lacks comes late, what is too much goes
// at once.
type follower struct {
	Config
	State
	owned  int
	lag    int
	coming []int // targets of the newest seconds
}

// live is one second of an agent's life.
func (f *follower) live(now int, o Observation) Decision {
	var d Decision
	o.Owned = f.owned
	f.State, d = f.Decide(f.State, time.Duration(now)*time.Second, o)
	if f.coming = append(f.coming, d.Target); len(f.coming) > f.lag {
		f.owned, f.coming = max(f.owned, min(f.coming[0], d.Target)), f.coming[1:]
	}
	f.owned = min(f.owned, d.Target)
	return d
}

// lives is what happens to an agent that is killed and to one that is not.
type lives struct {
	killed, back, lag int
	changes           []change
	writes            []int // seconds in which the state is written down for another reason than a higher demand
}

// change is what pods need from a second on.
type change struct {
	at, demand int
	valid      bool
}

func anyLives(t *rapid.T) lives {
	l := lives{lag: rapid.IntRange(0, 10).Draw(t, "lag"), killed: rapid.IntRange(2, 300).Draw(t, "killed")}
	l.back = l.killed + rapid.IntRange(0, 90).Draw(t, "down for")
	for at := 1; at < l.back+300; at += rapid.SampledFrom([]int{1, 2, 5, 20, 60, 150}).Draw(t, "for") {
		l.changes = append(l.changes, change{at, rapid.IntRange(0, 90).Draw(t, "demand"), rapid.IntRange(0, 9).Draw(t, "valid") > 0})
	}
	l.writes = rapid.SliceOfN(rapid.IntRange(1, l.killed), 0, 5).Draw(t, "writes")
	return l
}

// I14 and I5 over a restart: whenever an agent is killed, what was written down of it is enough
// for the next one to release nothing that an agent that lived on would have kept. What came and
// went while none ran is another matter: nobody has seen it.
func TestARestartReleasesNothingEarlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		// Each would step down in a rhythm of its own, and see a burst where it has less than the other.
		c.ReleaseInterval, c.ShrinkPercent, c.BurstPercent = time.Second, 10_000, 100_000
		l := anyLives(t)
		h := l.run(c)
		for i := 1; i < len(h.next); i++ {
			if target := h.next[i]; target < h.next[i-1] && (target < h.on[i] || target < h.needed[i]) {
				t.Fatalf("%d s after it came back it has a target of %d after %d, one that lived on of %d; within the delay %d were needed: %+v",
					i, target, h.next[i-1], h.on[i], h.needed[i], l)
			}
		}
	})
}

// I14 over a restart whatever the strategy: the next agent has seen for itself what pods need
// before anything goes back.
func TestARestartedAgentReleasesNothingAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		if rapid.Bool().Draw(t, "kpa") {
			c.Strategy, c.KPA = KPA, KPAConfig{Utilization: 70, GrowPercent: 1000, Activation: 1}
		}
		l := anyLives(t)
		h := l.run(c)
		for i := 1; i < len(h.next) && i < seconds(c.Stable); i++ {
			if h.next[i] < h.next[i-1] {
				t.Fatalf("%d s after it came back it has a target of %d after %d: %+v", i, h.next[i], h.next[i-1], l)
			}
		}
	})
}

// history is what both wanted in each second since one was back, and what pods needed within the
// delay of those addresses that the next one found, as who lived on has seen it.
type history struct{ on, next, needed []int }

func (l lives) run(c Config) (h history) {
	one := &follower{Config: c, State: New(c, 16, 0), owned: 16, lag: l.lag}
	next := &follower{Config: c, lag: l.lag}
	o, written, changes := Observation{Primaries: 1, Most: 100}, State{}, l.changes
	for now, known := 1, -1; now < l.back+300; now++ {
		for len(changes) > 0 && changes[0].at <= now {
			o.Demand, o.Valid, changes = changes[0].demand, changes[0].valid, changes[1:]
		}
		if now > l.killed && now < l.back {
			o.Demand = min(o.Demand, known)
		}
		d := one.live(now, o)
		if now <= l.killed && (one.Demand > known || slices.Contains(l.writes, now)) {
			written, known = one.State, one.Demand
		}
		if now == l.back {
			next.owned = one.owned
			next.State = written.Resume(c, next.owned, time.Duration(now)*time.Second)
		}
		if now >= l.back {
			highest, _ := one.peak(seconds(c.Delay))
			h.on, h.needed = append(h.on, d.Target), append(h.needed, min(next.owned, c.Need(highest, o.Primaries, o.Most)))
			h.next = append(h.next, next.live(now, o).Target)
		}
	}
	return h
}
