package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// Candidate is a setting with what it was like.
type Candidate struct {
	Setting
	Result Result
}

// Advice is what a search found.
type Advice struct {
	Met      bool      // Best keeps within the limit; if not, it comes nearest
	Best     Candidate // the setting to take
	RunnerUp Candidate // the best one of another mode or size
	Base     Candidate // the setting that the search began with
	Tried    int
	Kept     int // of those tried: that keep within the limit
	Reasons  []string
}

// Tune searches for the setting that keeps within a limit with the fewest idle addresses and,
// of those that have hardly more, changes the fewest things in the cloud. The limit is that of
// 100 pods 99 wait for their address at most maxWait, and no ADD fails. The search begins with
// the base, tries modes and sizes, then delays for the best of them. play plays settings and
// returns their results in the same order; nodes is how many nodes it plays.
func Tune(base agentconf.Config, nodes int, maxWait time.Duration, play func([]Setting) ([]Result, error)) (Advice, error) {
	s := search{maxWait: maxWait, spare: float64(nodes) / 2}
	if err := s.tryAll(play, sizes(base)); err != nil {
		return Advice{}, err
	}
	if err := s.tryAll(play, delays(base, s.bestBySize(3))); err != nil {
		return Advice{}, err
	}
	return s.advice(), nil
}

// search is the settings tried so far; the first is the base.
type search struct {
	maxWait time.Duration
	spare   float64 // idle addresses that make no difference
	tried   []Candidate
}

func (s *search) tryAll(play func([]Setting) ([]Result, error), list []variant) error {
	settings := make([]Setting, len(list))
	for i, v := range list {
		settings[i] = Setting{Name: v.name(), Config: v.config()}
	}
	results, err := play(settings)
	if err != nil {
		return err
	}
	for i, r := range results {
		s.tried = append(s.tried, Candidate{settings[i], r})
	}
	return nil
}

// meetsLimit tells whether the candidate keeps within the limit of Tune.
func (s *search) meetsLimit(c Candidate) bool {
	w := c.Result.Waits
	return w.Failed+w.Never == 0 && time.Duration(w.P99) <= s.maxWait
}

// ranked returns the candidates, the best first: those that keep within the limit, then the
// others, by how far they miss it.
func (s *search) ranked() []Candidate {
	var kept, missed []Candidate
	for _, c := range s.tried {
		if s.meetsLimit(c) {
			kept = append(kept, c)
		} else {
			missed = append(missed, c)
		}
	}
	slices.SortStableFunc(missed, func(a, b Candidate) int {
		x, y := a.Result.Waits, b.Result.Waits
		return cmp.Or(cmp.Compare(x.Never, y.Never), cmp.Compare(x.Failed, y.Failed), cmp.Compare(x.P99, y.P99), compareIdle(a, b))
	})
	// One after the other, as what counts as hardly more than the least depends on those that are left:
	// that is no order for a sort.
	var list []Candidate
	for len(kept) > 0 {
		best := s.cheapest(kept)
		list = append(list, kept[best])
		kept = slices.Delete(kept, best, best+1)
	}
	return append(list, missed...)
}

// cheapest returns which of the candidates has the fewest calls of those that have
// hardly more idle addresses than the least.
func (s *search) cheapest(list []Candidate) int {
	least := slices.MinFunc(list, compareIdle).Result.Idle.Mean
	best := -1
	for i, c := range list {
		if c.Result.Idle.Mean > least*1.05+s.spare {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(c.Result.Calls.Changes(), list[best].Result.Calls.Changes()), compareIdle(c, list[best])) < 0 {
			best = i
		}
	}
	return best
}

func compareIdle(a, b Candidate) int { return cmp.Compare(a.Result.Idle.Mean, b.Result.Idle.Mean) }

// bestBySize returns the settings of the n best candidates, delays aside.
func (s *search) bestBySize(n int) []Candidate {
	var list []Candidate
	for _, c := range s.ranked() {
		same := func(other Candidate) bool { return sameSize(c.Config.Pool, other.Config.Pool) }
		if len(list) < n && !slices.ContainsFunc(list, same) {
			list = append(list, c)
		}
	}
	return list
}

func (s *search) advice() Advice {
	best := s.bestBySize(2)
	a := Advice{Best: best[0], Base: s.tried[0], Tried: len(s.tried), Met: s.meetsLimit(best[0])}
	if len(best) > 1 {
		a.RunnerUp = best[1]
	}
	for _, c := range s.tried {
		if s.meetsLimit(c) {
			a.Kept++
		}
	}
	a.Reasons = s.explainBest(a)
	return a
}

// explainBest says for people why it is the best.
func (s *search) explainBest(a Advice) []string {
	w, idle := a.Best.Result.Waits, a.Best.Result.Idle.Mean
	list := []string{fmt.Sprintf("of 100 pods 99 wait at most %s (allowed: %s), the longest %s; ADDs that fail: %d", w.P99, Seconds(s.maxWait), w.Max, w.Failed)}
	if !a.Met {
		return append(list, fmt.Sprintf("none of the %d settings tried keeps within that; this one comes nearest", a.Tried))
	}
	list = append(list, fmt.Sprintf("%d of the %d settings tried keep within that; this one has %.1f idle addresses on average and changes %d things in the cloud",
		a.Kept, a.Tried, idle, a.Best.Result.Calls.Changes()))
	if a.Base.Name != a.Best.Name {
		base := a.Base.Result
		list = append(list, fmt.Sprintf("%s, which the search began with, has %.1f and %d, and 99 of 100 wait at most %s",
			a.Base.Name, base.Idle.Mean, base.Calls.Changes(), base.Waits.P99))
	}
	var saver, misser *Candidate // with fewer idle ones: within the limit, and beyond it
	for i := range s.tried {
		c := &s.tried[i]
		switch {
		case c.Result.Idle.Mean >= idle:
		case s.meetsLimit(*c) && (saver == nil || compareIdle(*c, *saver) < 0):
			saver = c
		case !s.meetsLimit(*c) && (misser == nil || c.Result.Waits.P99 < misser.Result.Waits.P99):
			misser = c
		}
	}
	if saver != nil {
		list = append(list, fmt.Sprintf("%s has hardly fewer idle ones, %.1f, for %d changes", saver.Name, saver.Result.Idle.Mean, saver.Result.Calls.Changes()))
	}
	if misser != nil {
		w := misser.Result.Waits
		list = append(list, fmt.Sprintf("with still fewer, %.1f, pods would wait too long: %s, 99 of 100 at most %s; ADDs that fail: %d", misser.Result.Idle.Mean, misser.Name, w.P99, w.Failed))
	}
	return list
}
