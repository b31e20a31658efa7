package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// leavers are instances that no Node has any more and that were alive, as far as is known. What they leave is looked for soon after they are gone. That
// takes a day at most: then there is a sweep anyway.
type leavers struct {
	of    map[string]leaver
	under bool
	at    time.Duration // when they are asked about next
}

// leaver is since when an instance has no Node, and when it was asked about last.
type leaver struct{ since, asked time.Duration }

// noteLeaver notes that an instance has no Node any more.
func (t *term) noteLeaver(instance string) {
	now := t.now().Mono
	if len(t.leavers.of) == 0 {
		t.leavers.of, t.leavers.at = map[string]leaver{}, now+t.o.LeakAge
	}
	t.leavers.of[instance] = leaver{since: now}
}

// askLeavers asks about some of them, and returns how long until it does that next.
func (t *term) askLeavers(now time.Duration) time.Duration {
	l := &t.leavers
	if t.o.Observe || l.under || len(l.of) == 0 {
		return patience
	}
	if l.at > now {
		return l.at - now
	}
	maps.DeleteFunc(l.of, func(_ string, one leaver) bool { return now-one.since > daily })
	if len(l.of) == 0 {
		return patience
	}
	list := slices.SortedFunc(maps.Keys(l.of), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.of[a].asked, l.of[b].asked), cmp.Compare(a, b))
	})
	list = list[:min(len(list), mostAsked)]
	l.under, l.at = true, now+t.o.LeakAge
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, shortJob)
		defer cancel()
		states, err := t.o.Region.Alive(ctx, list)
		t.post(func(t *term) { t.askedLeavers(list, states, err) })
	})
	return patience
}

// askedLeavers has a sweep follow where one is gone. The sweep itself asks twice about each.
func (t *term) askedLeavers(list []string, states map[string]cloud.State, err error) {
	now := t.now().Mono
	t.leavers.under = false
	if err != nil {
		t.o.Log.Warn("it is not known whether instances without a Node are gone", "error", err)
		return
	}
	for _, id := range list {
		one, is := t.leavers.of[id]
		switch {
		case !is: // a Node has it again
		case states[id] == cloud.Gone:
			delete(t.leavers.of, id)
			t.sweeps.ask(now + t.o.LeakAge)
		default:
			one.asked = now
			t.leavers.of[id] = one
		}
	}
}
