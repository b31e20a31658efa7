package classify

import (
	"fmt"
	"testing"
	"time"
)

// byLabel is a namespace with one label, as the API server has it.
func (w *world) byLabel(name, uid, value string) {
	w.say(Event{Namespace: &Namespace{Name: name, UID: uid, Labels: map[string]string{"name": value}}})
}

// People label a namespace and make pods in it with one command, and the watch of namespaces may lag behind that of pods: a pod that is taken
// for one of no topology has an address that a firewall does not know, for as long as it lives.
func TestANamespaceLabelledJustBeforeAPodCounts(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.addTopology("db", selects(0, "secret", "", time.Unix(1_800_000_000, 0)))
	w.in(func(f *term) {
		w.settle()
		w.mu.Lock()
		w.deaf = true
		w.mu.Unlock()
		w.byLabel("db", "", "secret")  // was "db"
		w.byLabel("new", "", "secret") // was not there
		w.put(gated("db", "p", "x"))
		w.put(gated("new", "q", "x"))
		w.settle()
		for _, of := range []key{{"db", "p"}, {"new", "q"}} {
			if says := saysOf(w.pod(of.namespace, of.name)); says != "db,db,a,false" {
				t.Errorf("%s: %s", of.name, says)
			}
		}
		w.tell(Event{Namespace: &Namespace{Name: "db", Version: "1", Labels: map[string]string{"name": "db"}}}) // the watch comes as far as before that
		w.mu.Lock()
		w.refuse = func(what string) error { return map[string]error{"namespaces": errDown}[what] }
		w.mu.Unlock()
		w.put(gated("db", "r", "x"))
		w.settle()
		if says := saysOf(w.pod("db", "r")); says != ",,,true" {
			t.Errorf("namespaces can't be read: %s", says)
		}
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		w.wait(2 * time.Minute)
		if says := saysOf(w.pod("db", "r")); says != "db,db,a,false" {
			t.Errorf("then: %s", says)
		}
	})
}

// What the watch tells late, of a namespace that was deleted and made again, is not of the one that is there.
func TestANamespaceIsAsWasToldLast(t *testing.T) {
	k := known{namespaces: map[string]Namespace{}}
	at := func(version, uid, value string) Namespace {
		return Namespace{Name: "db", UID: uid, Version: version, Labels: map[string]string{"name": value}}
	}
	for i, tt := range []struct {
		n             Namespace
		deleted, news bool
		want          string
	}{
		{at("7", "1", "a"), false, true, "map[name:a]"},
		{at("7", "1", "a"), false, false, "map[name:a]"},
		{at("12", "1", "b"), false, true, "map[name:b]"},
		{at("9", "1", "a"), false, false, "map[name:b]"},
		{at("30", "2", "c"), false, true, "map[name:c]"},
		{at("20", "1", "b"), true, false, "map[name:c]"},
		{at("31", "2", "c"), false, false, "map[name:c]"},
		{at("40", "2", "c"), true, false, "map[]"},
	} {
		if news := k.takeNamespace(tt.n, tt.deleted); news != tt.news || fmt.Sprint(k.namespaces["db"].Labels) != tt.want {
			t.Errorf("%d: news %t, labels %v, want %t, %s", i, news, k.namespaces["db"].Labels, tt.news, tt.want)
		}
	}
}
