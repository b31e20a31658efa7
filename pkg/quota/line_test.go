package quota

import (
	"fmt"
	"testing"
)

// What waits in a class that may not go costs nothing: for a hundred thousand nodes the queue is
// asked a hundred thousand times.
func TestAClassThatMayNotGoIsNotGoneThrough(t *testing.T) {
	var l line
	for i := range 100 {
		l.insert(Request{Node: fmt.Sprint("n", i), Class: Short})
	}
	asked := 0
	nodeMay := func(Request) bool { asked++; return true }
	classMay := func(c Class) bool { return c == Starving }
	if r, found := l.chooseNext(classMay, nodeMay); found || asked > 0 {
		t.Errorf("%+v (%v) after %d of its requests", r, found, asked)
	}
	l.insert(Request{Node: "z", Class: Starving})
	if r, found := l.chooseNext(classMay, nodeMay); !found || r.Node != "z" || asked != 1 {
		t.Errorf("%+v (%v) after %d requests", r, found, asked)
	}
}
