package status

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAPageIsWrittenWhenItSaysSomethingNewOrIsOldOrGone(t *testing.T) {
	p := Page{File: Beside(filepath.Join(t.TempDir(), "node.cache"))}
	s := example()
	start := s.Written
	for _, step := range []struct {
		name    string
		after   time.Duration
		demand  int
		remove  bool
		written bool
	}{
		{"at first", 0, 1, false, true},
		{"nothing new", time.Second, 1, false, false},
		{"nothing new for long", 29 * time.Second, 1, false, false},
		{"it is old", 30 * time.Second, 1, false, true},
		{"something new", 31 * time.Second, 2, false, true},
		{"somebody has removed it", 32 * time.Second, 2, true, true},
		{"the clock was set back", -time.Hour, 2, false, true},
	} {
		if step.remove {
			if err := os.Remove(p.Path); err != nil {
				t.Fatal(err)
			}
		}
		s.Written, s.Due, s.Demand = start.Add(step.after), start.Add(step.after+time.Minute), step.demand
		if err := p.Write(s); err != nil {
			t.Fatal(err)
		}
		got, err := p.Read()
		if err != nil || got.Demand != step.demand || got.Written.Equal(s.Written) != step.written {
			t.Errorf("%s: it says %d at %s, %v, want %d written: %t", step.name, got.Demand, got.Written, err, step.demand, step.written)
		}
	}
}
