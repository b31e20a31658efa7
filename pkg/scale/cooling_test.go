package scale

import (
	"testing"
	"time"
)

// A pool that may hold as many addresses as there are pods has more while some cool down, until
// a delay after as many did last, and no more than there is room for.
func TestWhatCoolsDownTakesNoRoomOfPods(t *testing.T) {
	for _, tt := range []struct {
		name string
		room int
		want string
	}{
		{"there is room", 312, "1:110 300:112 302:113 449:111 479:110"},
		{"room for one", 111, "1:110 300:111 467:110"},
		{"no room", 110, "1:110"},
	} {
		n := newNode(Default(), 110)
		got := n.history(900, func(now int) second {
			s := sees(110)
			s.Most, s.Room = 110, tt.room
			switch { // two pods are replaced, a second later a third one
			case now >= 300 && now < 302:
				s.Cooling = 2
			case now >= 302 && now < 330:
				s.Cooling = 3
			case now >= 330 && now < 348:
				s.Cooling = 1
			}
			s.Demand, s.Assigned = s.Demand+s.Cooling, 110
			return s
		})
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An agent that starts on a node with more than Most takes the rest for what cools down: it
// gives back nothing of that at once, but for what is more than the equation's 128.
func TestWhatIsThereBeyondMostStaysForADelay(t *testing.T) {
	c := Default()
	o := Observation{Demand: 110, Assigned: 110, Owned: 130, Most: 110, Room: 312, Valid: true}
	for name, s := range map[string]State{"a new one": New(c, 130, 0), "a restarted one": State{}.Resume(c, 130, 0)} {
		for now := range 120 {
			var d Decision
			if s, d = c.Decide(s, time.Duration(now)*time.Second, o); d.Target < 128 {
				t.Fatalf("%s: target %d after %d s", name, d.Target, now)
			}
		}
	}
}
