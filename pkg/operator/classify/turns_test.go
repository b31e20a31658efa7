package classify

import (
	"fmt"
	"testing"
	"time"
)

// A webhook on pods of one namespace, or of a few, that answers no patch holds up none of the others'.
func TestANamespaceWhosePatchesHangHoldsUpNoOther(t *testing.T) {
	const pods = 200
	w := newWorld(t)
	w.ready()
	for i := range 5 {
		name := fmt.Sprint("slow-", i)
		w.say(Event{Namespace: &Namespace{Name: name}})
	}
	w.in(func(f *term) {
		w.mu.Lock()
		for i := range 5 {
			w.hang[fmt.Sprint("slow-", i)] = make(chan struct{})
		}
		w.mu.Unlock()
		for i := range pods {
			for k := range 5 {
				w.put(gated(fmt.Sprint("slow-", k), fmt.Sprint("p", i), "x"))
			}
		}
		w.settle()
		for i := range pods {
			w.put(gated("web", fmt.Sprint("q", i), "x"))
		}
		w.wait(time.Second)
		for i := range pods {
			if says := saysOf(w.pod("web", fmt.Sprint("q", i))); says != ",,,false" {
				t.Fatalf("pod %d of another namespace waits: %s", i, says)
			}
		}
		w.mu.Lock()
		for name, hang := range w.hang {
			close(hang)
			delete(w.hang, name)
		}
		w.mu.Unlock()
		w.wait(5 * time.Minute) // what has run out of time is tried again later and later
		if len(f.pods) > 0 || f.due.all != 0 || len(f.due.under) != 0 || len(f.due.order) != 0 || len(f.due.pods) != 0 {
			t.Errorf("%d pods kept, %+v", len(f.pods), f.due)
		}
	})
}

// One namespace alone may use half of the places, and others that come find some.
func TestPlacesAreSharedByNamespaces(t *testing.T) {
	q := newTurns()
	took := func() (counts map[string]int) {
		counts = map[string]int{}
		for {
			k, is := q.next()
			if !is {
				return counts
			}
			q.begin(k.namespace)
			counts[k.namespace]++
		}
	}
	for i := range 100 {
		q.add(key{"a", fmt.Sprint(i)})
	}
	if got := took(); got["a"] != atOnce/2 {
		t.Errorf("alone: %v", got)
	}
	for i := range 100 {
		q.add(key{"b", fmt.Sprint(i)})
		q.add(key{"c", fmt.Sprint(i)})
	}
	if got := took(); got["a"] != 0 || got["b"] < 4 || got["c"] < 4 {
		t.Errorf("beside it: %v", got)
	}
	for range 20 { // each that comes finds a place
		of := fmt.Sprint("n", len(q.under))
		q.add(key{of, "p"})
		if got := took(); q.all < atOnce && got[of] == 0 {
			t.Errorf("%d under way: %v", q.all, got)
		}
	}
}

// The pods of a namespace come in the order in which they were added, and each namespace has its turn.
func TestNamespacesTakeTurns(t *testing.T) {
	q := newTurns()
	for _, name := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		q.add(key{name[:1], name})
	}
	got := ""
	for k, is := q.next(); is; k, is = q.next() {
		got += k.name + " "
	}
	if want := "a1 b1 c1 a2 c2 a3 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
