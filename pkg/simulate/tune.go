package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
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

// Weighing is what a search goes by: it is for the setting that costs the least of those by which of 100 pods 99 wait for their address at most MaxWait and no ADD
// fails. Idle addresses cost, and so do changes in the cloud.
type Weighing struct {
	MaxWait time.Duration
	Change  time.Duration // for how long an address may be idle for the cost of one change
}

// Tune searches for the setting that costs the least. It begins with the base, tries modes and sizes, then delays for the best of them. play plays
// settings and returns their results in the same order.
func Tune(base agentconf.Config, by Weighing, play func([]Setting) ([]Result, error)) (Advice, error) {
	s := search{Weighing: by}
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
	Weighing
	tried []Candidate
}

// cost is what a setting costs, in address-hours.
func (w Weighing) cost(c Candidate) float64 {
	return c.Result.Idle.AddressHours + float64(c.Result.Calls.Changes())*w.Change.Hours()
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
	return w.Failed+w.Never == 0 && time.Duration(w.P99) <= s.MaxWait
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
	slices.SortStableFunc(kept, func(a, b Candidate) int { return cmp.Or(cmp.Compare(s.cost(a), s.cost(b)), compareIdle(a, b)) })
	return append(kept, missed...)
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
	w := a.Best.Result.Waits
	list := []string{fmt.Sprintf("of 100 pods 99 wait at most %s (allowed: %s), the longest %s; ADDs that fail: %d", w.P99, Seconds(s.MaxWait), w.Max, w.Failed)}
	if !a.Met {
		return append(list, fmt.Sprintf("none of the %d settings tried keeps within that; this one comes nearest", a.Tried))
	}
	list = append(list, fmt.Sprintf("%d of the %d settings tried keep within that; this one costs the least, where a change in the cloud is worth an address that is idle for %s: %s",
		a.Kept, a.Tried, keys.ShortDuration(s.Change), a.Best.tell()))
	if a.Base.Name != a.Best.Name {
		list = append(list, fmt.Sprintf("%s, which the search began with: %s; 99 of 100 wait at most %s", a.Base.Name, a.Base.tell(), a.Base.Result.Waits.P99))
	}
	return append(list, s.explainEnds(a)...)
}

// tell says what a setting costs, of both kinds.
func (c Candidate) tell() string {
	return fmt.Sprintf("%.1f idle addresses on average, %d changes", c.Result.Idle.Mean, c.Result.Calls.Changes())
}

// explainEnds says what there is for people who weigh otherwise: the least of each kind, and what still less would be paid with.
func (s *search) explainEnds(a Advice) (list []string) {
	var saver, calmer, misser *Candidate
	for i := range s.tried {
		c := &s.tried[i]
		fewerIdle, fewerCalls := c.Result.Idle.Mean < a.Best.Result.Idle.Mean, c.Result.Calls.Changes() < a.Best.Result.Calls.Changes()
		switch {
		case s.meetsLimit(*c) && fewerIdle && (saver == nil || compareIdle(*c, *saver) < 0):
			saver = c
		case s.meetsLimit(*c) && fewerCalls && (calmer == nil || c.Result.Calls.Changes() < calmer.Result.Calls.Changes()):
			calmer = c
		case !s.meetsLimit(*c) && fewerIdle && (misser == nil || c.Result.Waits.P99 < misser.Result.Waits.P99):
			misser = c
		}
	}
	if saver != nil {
		list = append(list, fmt.Sprintf("the fewest idle addresses: %s, %s", saver.Name, saver.tell()))
	}
	if calmer != nil {
		list = append(list, fmt.Sprintf("the fewest changes: %s, %s", calmer.Name, calmer.tell()))
	}
	if misser != nil {
		w := misser.Result.Waits
		list = append(list, fmt.Sprintf("too few: %s, %s; 99 of 100 pods would wait at most %s, ADDs that fail: %d", misser.Name, misser.tell(), w.P99, w.Failed))
	}
	return list
}
