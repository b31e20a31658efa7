package operator

import "testing"

func TestWritesThatPodsWaitForWaitForNoOthers(t *testing.T) {
	o := open{writes: mostWrites - 1, parked: map[string]bool{}}
	if o.park("a", false) {
		t.Error("a write waits though few are under way")
	}
	o.writes++
	if !o.park("b", false) || o.park("c", true) {
		t.Errorf("with %d writes under way a node without waiting pods is to wait, and one with them is not", o.writes)
	}
	if next := o.unpark(); next != "" {
		t.Errorf("%q is written beside %d others", next, o.writes)
	}
	o.writes--
	if next := o.unpark(); next != "b" {
		t.Errorf("after one has ended %q is written", next)
	}
	if next := o.unpark(); next != "" {
		t.Errorf("%q is written twice", next)
	}
	o.writes = mostWrites
	o.park("d", false)
	if o.park("d", true); len(o.parked) > 0 {
		t.Errorf("%v still waits though its write has begun", o.parked)
	}
}
