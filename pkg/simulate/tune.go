package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/pool"
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

	// AtOnce is for loads whose pods all come at once and stay. ADDs fail by any setting then, as the cloud lets no more pass, and idle addresses cost what those
	// at the end do in a day: of how long they last the load tells nothing.
	AtOnce bool
	// Ready is how many addresses of all nodes are to be free at the end, for pods that come next.
	Ready int
	// Later is how much later, in percent, 99 of 100 pods may have their address than by the fastest of the settings tried. It replaces MaxWait if it is not 0.
	Later int
}

// Tune searches for the setting that costs the least. It begins with the base, tries modes and sizes, then delays for the best of them, of which pods that come
// at once and stay tell nothing. play plays settings and returns their results in the same order.
func Tune(base agentconf.Config, by Weighing, play func([]Setting) ([]Result, error)) (Advice, error) {
	s := search{Weighing: by}
	if err := s.tryAll(play, sizes(base)); err != nil {
		return Advice{}, err
	}
	if by.AtOnce {
		return s.advice(), nil
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
	hours := c.Result.Idle.AddressHours
	if w.AtOnce {
		hours = 24 * w.idle(c)
	}
	return hours + float64(c.Result.Calls.Changes())*w.Change.Hours()
}

// idle is how many addresses are idle by a setting.
func (w Weighing) idle(c Candidate) float64 {
	if n := len(c.Result.Series); w.AtOnce && n > 0 {
		return float64(c.Result.Series[n-1].Idle)
	}
	return c.Result.Idle.Mean
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
	return s.serves(c) && time.Duration(c.Result.Waits.P99) <= s.limit()
}

// serves tells whether all pods have addresses as they are to.
func (w Weighing) serves(c Candidate) bool {
	r := c.Result
	if w.AtOnce {
		return r.Waits.Never == 0 && (r.Served == nil || r.Served.All) && w.idle(c) >= float64(w.Ready)
	}
	return r.Waits.Failed+r.Waits.Never == 0
}

// limit is how long 99 of 100 pods may wait.
func (s *search) limit() time.Duration {
	if s.Later == 0 {
		return s.MaxWait
	}
	var least Seconds
	found := false
	for _, c := range s.tried {
		if w := c.Result.Waits; s.serves(c) && (!found || w.P99 < least) {
			least, found = w.P99, true
		}
	}
	return time.Duration(least) * time.Duration(100+s.Later) / 100
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
		return cmp.Or(cmp.Compare(x.Never, y.Never), cmp.Compare(x.Failed, y.Failed), cmp.Compare(x.P99, y.P99), s.compareIdle(a, b))
	})
	slices.SortStableFunc(kept, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(s.cost(a), s.cost(b)), s.compareIdle(a, b), compareSteps(b, a))
	})
	return append(kept, missed...)
}

func (w Weighing) compareIdle(a, b Candidate) int { return cmp.Compare(w.idle(a), w.idle(b)) }

// compareSteps compares how much a setting asks for at a time: of two that cost the same in this load the one with larger batches calls less often in others.
func compareSteps(a, b Candidate) int {
	if a.Config.Pool.Mode != pool.Batch || b.Config.Pool.Mode != pool.Batch {
		return 0
	}
	return cmp.Compare(a.Config.Pool.Scale.Batch, b.Config.Pool.Scale.Batch)
}

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
