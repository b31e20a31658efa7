package order

import (
	"math"
	"net/netip"
	"testing"
	"time"
)

// doubted is a status whose address goes with a call of unknown outcome, and the term in which it does.
func doubted() (*Term, View, Moment) {
	p := netip.MustParsePrefix(x)
	t := NewTerm(lease, 7, 0)
	v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 7, Revision: 3, Releasing: []netip.Prefix{p},
		ENIs: []ENI{{ID: "eni-a", State: Attached, Addresses: []netip.Prefix{p}}}}}
	at := Moment{Mono: time.Minute, Wall: time.Unix(1_800_000_000, 0)}
	t.Asked(v.Status, p)
	t.Asked(v.Status, p)
	t.Answered(p)
	v.Status = t.Unassigned(v, at, p)
	return t, v, at
}

func (m Moment) after(mono, wall time.Duration) Moment {
	return Moment{m.Mono + mono, m.Wall.Add(wall)}
}

// A quarantine lasts for as long as a late call may take effect, wherever the time of day goes meanwhile.
func TestAClockThatIsSetEndsNoQuarantine(t *testing.T) {
	for name, tt := range map[string]struct {
		mono, wall time.Duration
		over       bool
	}{
		"in time":                      {lease.Fence, lease.Fence, true},
		"too early":                    {lease.Fence - 1, lease.Fence - 1, false},
		"set forward at once":          {time.Second, 24 * time.Hour, false},
		"set forward, and its time":    {lease.Fence, 24 * time.Hour, true},
		"set back, and not its time":   {lease.Fence - 1, -24 * time.Hour, false},
		"set back does not prolong it": {lease.Fence, -24 * time.Hour, true},
	} {
		term, v, at := doubted()
		if len(v.Status.Quarantined) != 1 {
			t.Fatalf("%+v", v.Status)
		}
		began := at.after(tt.mono, tt.wall)
		next, _ := term.Described(v, began, Description{Began: began, Shown: map[string][]netip.Prefix{"eni-a": nil}})
		if over := len(next.Quarantined) == 0; over != tt.over {
			t.Errorf("%s: over %v, want %v", name, over, tt.over)
		}
	}
}

// The next leader goes by what is written down, and by its own clock from when it read that.
func TestTheNextLeaderGoesByWhatIsWrittenAndByItsClock(t *testing.T) {
	_, v, at := doubted()
	half := lease.Fence / 2
	for name, tt := range map[string]struct {
		mono, wall time.Duration // of the second describe, since the first
		over       bool
	}{
		"in time":             {half, half, true},
		"too early":           {half - 1, half - 1, false},
		"set forward":         {1, time.Hour, false},
		"set back":            {half, -time.Hour, false},
		"set back for a time": {lease.Fence, -time.Hour, true},
	} {
		term := NewTerm(lease, 8, 0)
		first := Moment{time.Hour, at.Wall.Add(half)}
		shown := Description{Began: first, Shown: map[string][]netip.Prefix{"eni-a": nil}}
		s, _ := term.Described(v, first, shown)
		shown.Began = first.after(tt.mono, tt.wall)
		s, _ = term.Described(View{v.Spec, s}, shown.Began, shown)
		if over := len(s.Quarantined) == 0; over != tt.over {
			t.Errorf("%s: over %v, want %v", name, over, tt.over)
		}
	}
}

// A revision that somebody makes up stops no operator: it counts on, and a status that follows is one that the API server takes.
func TestARevisionThatIsMadeUpStopsNothing(t *testing.T) {
	for _, seen := range []int64{-1, MostSeen, MostSeen + 1, math.MaxInt64, math.MinInt64} {
		term, v, at := doubted()
		v.Spec.SeenRevision = seen
		began := at.after(lease.Settle, lease.Settle)
		for range 3 {
			next, _ := term.Described(v, began, Description{Began: began, Shown: map[string][]netip.Prefix{"eni-a": nil}})
			if !Follows(v.Status, next) || next.Revision < 0 || next.Revision > MostSeen+2 {
				t.Fatalf("%d: revision %d follows %d", seen, next.Revision, v.Status.Revision)
			}
			v.Status = next
			began = began.after(lease.Fence, lease.Fence)
		}
		if IsBehind(v) {
			t.Errorf("%d: still behind at revision %d", seen, v.Status.Revision)
		}
	}
	if got := NextRevision(View{Status: Status{Revision: math.MaxInt64}}); got != math.MaxInt64 {
		t.Errorf("after the last revision comes %d", got)
	}
}

// Of a status that was put back nothing follows before all calls of before have ended, and what its agent does not publish goes back no more.
func TestAStatusOfBeforeCountsWhenNoCallIsUnderWay(t *testing.T) {
	p, q := netip.MustParsePrefix(x), netip.MustParsePrefix("10.0.0.11/32")
	term := NewTerm(lease, 8, 0)
	v := View{Spec: Spec{Mode: Operator, SeenRevision: 9, Release: []netip.Prefix{q}}, Status: Status{Mode: Operator, Epoch: 7, Revision: 3, Releasing: []netip.Prefix{p, q},
		ENIs: []ENI{{ID: "eni-a", State: Attached, Addresses: []netip.Prefix{p, q}}}}}
	at := Moment{Mono: time.Hour, Wall: time.Unix(1_800_000_000, 0)}
	d := Description{Began: at, Shown: map[string][]netip.Prefix{"eni-a": {p, q}}}
	if s, is := term.Described(v, at, d); is {
		t.Errorf("told at once: %+v", s)
	}
	d.Began = at.after(lease.Fence, lease.Fence)
	s, is := term.Described(v, d.Began, d)
	if !is || s.Revision != 10 || len(s.Releasing) != 1 || s.Releasing[0] != q {
		t.Errorf("%+v", s)
	}
}
