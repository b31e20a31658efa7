package classify

import (
	"slices"
	"testing"
	"time"
)

// Something that adds Nodes does it for pods without a gate alone, so a pod is sent to a zone without Nodes where it is known how these will be labelled,
// and people are told.
func TestAPodIsSentWhereANodeCanCome(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	w.nodeless = true
	w.in(func(*term) {
		w.put(gated("db", "p", "x"))
		w.settle()
		if says := saysOf(w.pod("db", "p")); says != "db,db,a,false" {
			t.Errorf("%s", says)
		}
		if got := w.heard(); !slices.Equal(got, []string{"db p NoNode"}) {
			t.Errorf("told %q", got)
		}
		w.put(gated("web", "none", "x"))
		w.settle()
	})
}

// Where nobody knows it the pod waits: what it was sent to could never be changed.
func TestAPodWaitsForANodeOfItsZone(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	w.addTopology("none", selects(1, "web", "", time.Unix(1_800_000_000, 0)))
	w.labels = map[string][]string{"a": nil}
	w.in(func(*term) {
		w.put(gated("db", "p", "x"))
		w.wait(5 * time.Minute)
		if got := w.heard(); !slices.Equal(got, []string{"db p NoNode"}) {
			t.Errorf("told %q", got)
		}
		if says := saysOf(w.pod("db", "p")); says != ",,,true" {
			t.Errorf("%s", says)
		}
		w.mu.Lock()
		w.labels = map[string][]string{"a": {"zoneA"}}
		w.mu.Unlock()
		w.wait(longestPause + 2*time.Second)
		if says := saysOf(w.pod("db", "p")); says != "db,db,zoneA,false" {
			t.Errorf("with a Node: %s", says)
		}
	})
}
