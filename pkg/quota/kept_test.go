package quota

import (
	"fmt"
	"testing"
)

// Slow requests of what goes back hold some of the places for requests under way, and never all: pods that wait find one.
func TestPodsThatWaitFindAPlace(t *testing.T) {
	q := NewQueue(plenty())
	put(q, Giving, 2*inAll)
	n := 0
	var last Request
	for {
		w, found := q.Take(0)
		if !found {
			break
		}
		if n++; w.Class != Giving {
			t.Fatalf("%+v", w)
		}
	}
	if n != inAll-kept {
		t.Errorf("%d of what goes back are under way, want %d", n, inAll-kept)
	}
	if held := q.Held(0); !held[Giving] || held[Starving] {
		t.Errorf("held: %v", held)
	}
	put(q, Starving, 2*kept)
	for n = 0; ; n++ {
		w, found := q.Take(0)
		if !found {
			break
		}
		if w.Class != Starving {
			t.Fatalf("%s goes before pods that wait", w.Class)
		}
		last = w
	}
	if n != kept {
		t.Errorf("%d pods that wait are served, want %d", n, kept)
	}
	if held := q.Held(0); !held[Giving] || !held[Starving] {
		t.Errorf("held: %v", held)
	}
	q.Done(last)
	if w, found := q.Take(0); !found || w.Class != Starving {
		t.Errorf("%+v follows", w)
	}
}

// What goes back of a node does not keep what its pods wait for.
func TestANodeGivesBackOneAtATime(t *testing.T) {
	q := NewQueue(plenty())
	var requests []Request
	for i := range 3 {
		requests = append(requests, Request{Node: "n", Action: action, Object: fmt.Sprint("eni-", i), Class: Giving})
	}
	q.Set("n", requests)
	given, found := q.Take(0)
	if _, second := q.Take(0); !found || second {
		t.Errorf("two are under way: %t, %t", found, second)
	}
	q.Set("n", []Request{{Node: "n", Action: action, Object: "eni-9", Class: Starving}})
	if w, found := q.Take(0); !found || w.Class != Starving {
		t.Errorf("%+v, %t: its pods wait", w, found)
	}
	q.Done(given)
	if held := q.Held(0); held != [classes]bool{} {
		t.Errorf("nothing waits, and held is %v", held)
	}
}

// A token of what was not sent is there for the next one, and never one more than the bucket holds.
func TestATokenOfWhatWasNotSentComesBack(t *testing.T) {
	b := NewBudget(map[string]Limit{action: {Burst: 2, PerSecond: 0.001}}, Limit{}, 0)
	for range 50 {
		if !b.Take(action, 0) {
			t.Fatal("no token")
		}
		b.Refund(action, 0)
	}
	b.Refund(action, 0)
	if s := b.States(0); s[0].Tokens != 2 {
		t.Errorf("%v tokens, want 2", s[0].Tokens)
	}
	b.Throttled(action, 0, 0)
	b.Refund(action, 0)
	if s := b.States(0); s[0].Tokens != 0 {
		t.Errorf("%v tokens while the cloud refuses", s[0].Tokens)
	}
}
