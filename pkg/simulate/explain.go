package simulate

import (
	"fmt"

	"github.com/enipool/enipool/pkg/config/keys"
)

// explainBest says for people why it is the best.
func (s *search) explainBest(a Advice) []string {
	w, allowed := a.Best.Result.Waits, Seconds(s.limit()).String()
	if s.Later > 0 {
		allowed += fmt.Sprintf(", %d%% more than by the fastest setting tried", s.Later)
	}
	if s.Ready > 0 {
		allowed += fmt.Sprintf("; with at least %d idle addresses at the end", s.Ready)
	}
	list := []string{fmt.Sprintf("of 100 pods 99 wait at most %s (allowed: %s), the longest %s; ADDs that fail: %d", w.P99, allowed, w.Max, w.Failed)}
	if !a.Met {
		return append(list, fmt.Sprintf("none of the %d settings tried keeps within that; this one comes nearest", a.Tried))
	}
	list = append(list, fmt.Sprintf("%d of the %d settings tried keep within that; this one costs the least, where a change in the cloud is worth an address that is idle for %s: %s",
		a.Kept, a.Tried, keys.ShortDuration(s.Change), s.tell(a.Best)))
	if a.Base.Name != a.Best.Name {
		list = append(list, fmt.Sprintf("%s, which the search began with: %s; 99 of 100 wait at most %s", a.Base.Name, s.tell(a.Base), a.Base.Result.Waits.P99))
	}
	if t := a.Best.Result.Topologies; t != nil {
		list = append(list, t.explain(a.Best.Config.Pool.TopologyPlaces))
	}
	return append(list, s.explainEnds(a)...)
}

// explain says how pods of topologies fare, which is much the same by any setting.
func (r HostedResult) explain(places int) string {
	text := fmt.Sprintf("pods of topologies, for which each node keeps %d places: 99 of 100 wait at most %s, in %d calls", places, r.First.P99, r.First.Calls())
	if r.Moved != nil {
		text += fmt.Sprintf("; after the drain %s, in %d calls", r.Moved.P99, r.Moved.Calls())
	}
	return text
}

// tell says what a setting costs, of both kinds.
func (w Weighing) tell(c Candidate) string {
	when := "on average"
	if w.AtOnce {
		when = "at the end"
	}
	return fmt.Sprintf("%.1f idle addresses %s, %d changes", w.idle(c), when, c.Result.Calls.Changes())
}

// explainEnds says what there is for people who weigh otherwise: the least of each kind, and what still less would be paid with.
func (s *search) explainEnds(a Advice) (list []string) {
	var saver, calmer, misser *Candidate
	for i := range s.tried {
		c := &s.tried[i]
		fewerIdle, fewerCalls := s.compareIdle(*c, a.Best) < 0, c.Result.Calls.Changes() < a.Best.Result.Calls.Changes()
		switch {
		case s.meetsLimit(*c) && fewerIdle && (saver == nil || s.compareIdle(*c, *saver) < 0):
			saver = c
		case s.meetsLimit(*c) && fewerCalls && (calmer == nil || c.Result.Calls.Changes() < calmer.Result.Calls.Changes()):
			calmer = c
		case !s.meetsLimit(*c) && fewerIdle && (misser == nil || c.Result.Waits.P99 < misser.Result.Waits.P99):
			misser = c
		}
	}
	if saver != nil {
		list = append(list, fmt.Sprintf("the fewest idle addresses: %s, %s", saver.Name, s.tell(*saver)))
	}
	if calmer != nil {
		list = append(list, fmt.Sprintf("the fewest changes: %s, %s", calmer.Name, s.tell(*calmer)))
	}
	if misser != nil {
		w, what := misser.Result.Waits, "too few"
		if s.AtOnce && s.idle(*misser) >= float64(s.Ready) { // enough, but pods wait longer
			what = "slower"
		}
		list = append(list, fmt.Sprintf("%s: %s, %s; 99 of 100 pods would wait at most %s, ADDs that fail: %d", what, misser.Name, s.tell(*misser), w.P99, w.Failed))
	}
	return list
}
