package classify

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/topology"
)

// How far a topology is used stands in its status, and is written once in a while however fast pods come, and not at all when none does.
func TestATopologySaysHowFarItIsUsed(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	count := func(c topology.Count) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.counts = map[string]topology.Count{"db": c}
	}
	w.in(func(*term) {
		w.settle()
		if is := w.topology("db").Status; is.Pods != nil || is.Room != nil {
			t.Errorf("it says %+v, and nobody has counted", is)
		}
		before := w.count(&w.writes)
		for i := range 30 {
			count(topology.Count{Pods: i, Claims: 1, Room: 40 - i})
			w.wait(time.Second)
		}
		if n := w.count(&w.writes) - before; n < 3 || n > 4 {
			t.Errorf("%d writes in 30 s", n)
		}
		w.wait(time.Minute)
		if is := w.topology("db").Status; is.Pods == nil || *is.Pods != 29 || *is.Claims != 1 || *is.Room != 11 {
			t.Errorf("it says %+v", is)
		}
		before = w.count(&w.writes)
		w.wait(time.Hour)
		if n := w.count(&w.writes) - before; n != 0 {
			t.Errorf("%d writes, and nothing changed", n)
		}
	})
}
