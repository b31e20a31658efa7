package health

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anything draws an observation that may contradict itself: a judge must not care.
func anything(t *rapid.T) Observation {
	n := func(name string) int { return rapid.IntRange(0, 20).Draw(t, name) }
	o := Observation{Usable: rapid.IntRange(0, 9).Draw(t, "usable") > 0, Have: n("have"), Used: n("used"), Free: n("free") / 7, Soon: n("soon") / 10,
		Demand: n("wanted"), Unserved: n("unserved") / 5, Target: n("target"), Most: n("most") - 1}
	if o.Stuck = rapid.Bool().Draw(t, "stuck"); o.Stuck || rapid.Bool().Draw(t, "failed") {
		o.Cause = Cause{Reason: rapid.SampledFrom(Reasons()[1:]).Draw(t, "cause"), What: rapid.String().Draw(t, "what"), Remedy: rapid.String().Draw(t, "remedy")}
	}
	return o
}

// moment is a judgement with what led to it.
type moment struct {
	now time.Duration
	o   Observation
	s   State
	r   Report
}

// history is a run of the judge: at random times, and whenever it asks for it.
func history(t *rapid.T, c Config) (list []moment) {
	now, s := time.Hour, New()
	o := anything(t)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		end := now + time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms"))*time.Millisecond
		for again := s.Again(c); again > now && again <= end; again = s.Again(c) {
			now = again
			var r Report
			s, r = Judge(c, s, now, o)
			list = append(list, moment{now, o, s, r})
		}
		now = end
		if rapid.IntRange(0, 2).Draw(t, "changes") == 0 {
			o = anything(t)
		}
		var r Report
		s, r = Judge(c, s, now, o)
		list = append(list, moment{now, o, s, r})
	}
	return list
}

func anyConfig(t *rapid.T) Config {
	s := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(1, 90).Draw(t, name)) * time.Second
	}
	return Config{Grace: s("grace"), Quiet: s("quiet"), Taint: rapid.Bool().Draw(t, "taint")}
}

func TestTheReportNeverFlapsFasterThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		list := history(t, c)
		var turned, renamed, sized time.Duration
		for i, m := range list[1:] {
			was := list[i].r
			if m.r.Faulty != was.Faulty {
				if least := map[bool]time.Duration{true: c.Grace, false: c.Quiet}[m.r.Faulty]; turned > 0 && m.now-turned < least {
					t.Fatalf("faulty %v only %s after it was not, want %s", m.r.Faulty, m.now-turned, least)
				}
				turned, renamed = m.now, m.now
			} else if m.r.Reason != was.Reason {
				if m.now-renamed < c.Grace {
					t.Fatalf("%s only %s after %s", m.r.Reason, m.now-renamed, was.Reason)
				}
				renamed = m.now
			}
			if m.r.Capacity != was.Capacity && was.Capacity >= 0 {
				if sized > 0 && m.now-sized < c.Grace && was.Capacity > 0 { // the first address is told at once
					t.Fatalf("capacity %d only %s after %d", m.r.Capacity, m.now-sized, was.Capacity)
				}
				sized = m.now
			}
		}
	})
}

func TestAFaultIsSetWithinTheGraceAndClearedWithinTheQuietTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		var lacks, well time.Duration // since when without a break, as the observations have it
		named := false                // with something in the way, all the time
		for _, m := range history(t, c) {
			if !m.o.short() {
				lacks = 0
			} else if lacks == 0 {
				lacks, named = m.now, true
			}
			named = named && (m.o.Cause.Reason != "" || !m.o.Usable) && m.o.cause().Reason != NoFreeAddress
			if !m.o.well() {
				well = 0
			} else if well == 0 {
				well = m.now
			}
			switch {
			case lacks > 0 && m.now-lacks >= c.Grace && named && !m.r.Faulty, lacks > 0 && m.now-lacks >= slow*c.Grace && !m.r.Faulty:
				t.Fatalf("pods lack addresses for %s and there is no fault", m.now-lacks)
			case well > 0 && m.now-well >= c.Quiet && m.r.Faulty:
				t.Fatalf("all is well for %s and the fault stays", m.now-well)
			}
		}
	})
}

func TestAReportIsAlwaysWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		for _, m := range history(t, c) {
			r := m.r
			if !slices.Contains(Reasons(), r.Reason) || r.Faulty == (r.Reason == AddressesAvailable) || r.Taint != (r.Faulty && c.Taint) {
				t.Fatalf("report %+v", r)
			}
			if r.Message == "" || strings.ContainsAny(r.Message, "\n\r\t") {
				t.Fatalf("message %q", r.Message)
			}
			if r.Capacity < -1 || r.Capacity > 20 {
				t.Fatalf("capacity %d", r.Capacity)
			}
		}
	})
}

// Whatever was before: what stands still for long enough is told as it is.
func TestTheCapacityBecomesWhatThereIsOrWhatThereCouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		list := history(t, c)
		last := list[len(list)-1]
		o, s, now := last.o, last.s, last.now
		o.Usable, o.Most = true, max(o.Most, 0)
		var r Report
		for range 4 {
			s, r = Judge(c, s, now, o)
			now += max(c.Grace, c.Quiet)
		}
		want := o.Most
		if o.Stuck || r.Faulty && !o.well() {
			want = min(o.Most, o.Have)
		}
		if want = max(want, o.Used); r.Capacity != want {
			t.Fatalf("capacity %d, want %d of %+v", r.Capacity, want, o)
		}
	})
}

// Nobody needs to judge more often than Again says.
func TestAgainIsNeverLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		for _, m := range history(t, c) {
			again, s := m.s.Again(c), m.s
			for now := m.now; now < m.now+10*time.Minute; now += time.Second {
				var r Report
				s, r = Judge(c, s, now, m.o)
				if r.Message = m.r.Message; r == m.r {
					continue
				}
				if again == 0 || again > now {
					t.Fatalf("at %s the report is %+v, at %s %+v; Again was %s", m.now, m.r, now, r, again)
				}
				break
			}
		}
	})
}

func TestAStateOutlivesItsProcess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		for _, m := range history(t, c) {
			text, err := json.Marshal(m.s)
			var back State
			if err == nil {
				err = json.Unmarshal(text, &back)
			}
			if diff := cmp.Diff(m.s, back); diff != "" || err != nil {
				t.Fatalf("%v\n%s", err, diff)
			}
			again, r := Judge(c, back, m.now, m.o)
			if diff := cmp.Diff(m.s, again) + cmp.Diff(m.r, r); diff != "" {
				t.Fatalf("judged twice:\n%s", diff)
			}
		}
	})
}
