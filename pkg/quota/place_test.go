package quota

import (
	"testing"
	"time"
)

// A place counts all that goes before: what has begun, more urgent classes, and the older ones of its own.
func TestAPlaceCountsAllThatGoesBefore(t *testing.T) {
	q := NewQueue(plenty())
	put(q, Starving, 3)
	put(q, Short, 2)
	q.Set("begun", []Request{{Node: "begun", Action: action, Class: Giving, Begun: true}})
	q.Set("other", []Request{{Node: "other", Action: "Create", Class: Starving}})
	q.Set("me", []Request{{Node: "me", Action: action, Class: Short, Since: 1}, {Node: "me", Action: "Create", Class: Starving, Since: 1}})
	got := q.Places("me")
	if len(got) != 2 || got[0].Action != "Create" || got[0].Before != 1 || got[1].Action != action || got[1].Before != 1+3+1 {
		t.Errorf("%+v", got)
	}
	if got := q.Places("starving-000"); len(got) != 1 || got[0].Before != 1 {
		t.Errorf("the first of its class: %+v", got)
	}
	if got := q.Places("begun"); len(got) != 1 || got[0].Before != 0 {
		t.Errorf("what has begun: %+v", got)
	}
	if got := q.Places("nobody"); got != nil {
		t.Errorf("%+v", got)
	}
}

// Who waits behind n others is served when the budget says so, to the nanosecond.
func TestATokenIsExpectedWhenItComes(t *testing.T) {
	limit := Limit{Burst: 4, PerSecond: 2}
	for before := range 12 {
		b := NewBudget(map[string]Limit{action: limit}, Limit{}, 0)
		want := b.Expected(action, before, 0)
		var now time.Duration
		for range before + 1 {
			now = b.Next(action, now)
			if !b.Take(action, now) {
				t.Fatal("no token though Next says so")
			}
		}
		if now != want {
			t.Errorf("behind %d: served at %s, expected at %s", before, now, want)
		}
	}
}
