package scale

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDecideFollowsTheVectors holds V1 to V12, a call a second, the cloud
// delivering after one.
func TestDecideFollowsTheVectors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		owned int
		last  int
		set   func(*Config)
		see   func(t int) second
		want  string
	}{
		{"V1: nothing is released within a minute of boot", 48, 600, nil,
			func(int) second { return sees(20) }, "1:48 61:32"},
		{"V2: an empty node holds a batch ready", 0, 600, nil,
			func(t int) second { return sees(from(t, 10, 0, 5)) }, "1:16"},
		{"V3: a burst and its end", 16, 700, nil, func(t int) second {
			s := sees(from(t, 200, from(t, 100, 1, 36), 1))
			s.latency = 20
			return s
		}, "1:16 100:48 319:32 349:16"},
		{"V4: a pod that comes and goes moves nothing", 16, 2000, nil,
			func(t int) second { return sees(9 - t/20%2) }, "1:32"},
		{"V5: a short dip moves nothing", 48, 1000, nil, func(t int) second {
			return sees(from(t, 330, from(t, 300, 40, 10), 40))
		}, "1:48"},
		{"V6: what can't be read is not zero", 48, 900, nil, func(t int) second {
			s := sees(from(t, 300, 40, 5))
			s.Assigned = from(t, 350, 40, 5)
			s.Valid = t < 300 || t > 399
			return s
		}, "1:48 519:32 549:16"},
		{"V7: an exhausted subnet gets back all but the spare", 32, 900, nil, func(t int) second {
			s := sees(20)
			s.Exhausted = t >= 300 && t <= 419
			return s
		}, "1:32 300:21 420:32"},
		{"V8: a lower maximum takes no pod's address", 64, 900, nil, func(t int) second {
			s := sees(50)
			s.Assigned, s.Most = 50, from(t, 300, 250, 40)
			return s
		}, "1:64 300:50"},
		{"V9: a primary is part of the batch", 31, 700, func(c *Config) { c.CountPrimaries = true }, func(t int) second {
			s := sees(from(t, 200, 8, 7))
			s.Primaries = 1
			return s
		}, "1:31 319:15"},
		{"V10: a large pool goes in halves", 250, 700, nil,
			func(t int) second { return sees(from(t, 200, 240, 0)) }, "1:250 319:128 349:64 379:32 409:16"},
		{"V11: the mean alone", 112, 700,
			func(c *Config) { c.Delay, c.ReleaseInterval, c.ShrinkPercent = 0, time.Second, 1000 },
			func(t int) second { return sees(from(t, 200, 100, 10)) },
			"1:112 207:96 218:80 229:64 239:48 250:32"},
		{"V12: one second of many pods", 32, 700, nil,
			func(t int) second { return sees(from(t, 201, from(t, 200, 20, 100), 20)) }, "1:32 200:112 320:64 350:32"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Default()
			if tt.set != nil {
				tt.set(&c)
			}
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := newNode(c, tt.owned).history(tt.last, tt.see); got != tt.want {
				t.Errorf("targets %s, want %s", got, tt.want)
			}
		})
	}
}

func TestABurstLastsUntilTheCloudDeliveredAndAWindowMore(t *testing.T) {
	n := newNode(Default(), 16)
	for now := 1; now <= 300; now++ {
		s := sees(from(now, 100, 1, 36))
		s.latency = 20
		d := n.tick(now, s)
		// The first minute is one of its own: nothing is known yet.
		if want := now <= 60 || now >= 101 && now <= 179; d.Burst != want {
			t.Errorf("at %d burst is %t", now, d.Burst)
		}
	}
}

// TestAnExhaustedSubnetIsLeftItsAddresses holds A69 to A71: the pods' own and one.
func TestAnExhaustedSubnetIsLeftItsAddresses(t *testing.T) {
	for _, tt := range []struct{ used, want int }{{5, 6}, {0, 1}, {250, 250}} {
		n := newNode(Default(), 32)
		for now := 1; now <= 61; now++ {
			n.tick(now, sees(tt.used))
		}
		s := sees(tt.used)
		s.Exhausted = true
		if d := n.tick(62, s); d.Target != tt.want || d.Reason != Exhausted {
			t.Errorf("%d pods get %d because of %s, want %d", tt.used, d.Target, d.Reason, tt.want)
		}
	}
}

// A fresh start is no reason to release anything, not even where others wait (I14):
// the demand may still grow while the first seconds are read.
func TestAFreshStartHoldsInAnExhaustedSubnetToo(t *testing.T) {
	see := func(int) second {
		s := sees(5)
		s.Exhausted = true
		return s
	}
	if got, want := newNode(Default(), 32).history(300, see), "1:32 61:6"; got != want {
		t.Errorf("targets %s, want %s", got, want)
	}
}

// A68: where the monitor that was replaced asks to release everything.
func TestAMaximumOfNothingTakesNoPodsAddress(t *testing.T) {
	see := func(t int) second {
		s := sees(5)
		s.Assigned, s.Most = 5, from(t, 100, 250, 0)
		return s
	}
	if got, want := newNode(Default(), 16).history(600, see), "1:16 100:5"; got != want {
		t.Errorf("targets %s, want %s", got, want)
	}
}

// TestReconcilesAsTheMonitorThatWasReplaced holds the vectors of a reconcile that
// are about the size: what grows does so in the first call, what shrinks gets there
// when nothing holds it any more. What is marked and published is the planner's.
func TestReconcilesAsTheMonitorThatWasReplaced(t *testing.T) {
	for _, tt := range []struct{ demand, request, want int }{
		{5, 16, 16}, {15, 16, 32}, {75, 16, 96}, {300, 16, 250},
		{5, 32, 16}, {5, 128, 16}, {0, 32, 16}, {20, 16, 32},
		// A request that others edited is back at whole batches without waiting for
		// the demand to cross a step.
		{15, 3, 32}, {5, 37, 16},
	} {
		n := newNode(Default(), tt.request)
		first := n.tick(1, sees(tt.demand)).Target
		if want := max(tt.request, tt.want); first != want {
			t.Errorf("%d pods on %d: %d at once, want %d", tt.demand, tt.request, first, want)
		}
		var last Decision
		for now := 2; now < 600; now++ {
			last = n.tick(now, sees(tt.demand))
		}
		if last.Target != tt.want {
			t.Errorf("%d pods on %d: %d in the end, want %d", tt.demand, tt.request, last.Target, tt.want)
		}
	}
}

// phase is an observation that holds until a second, with the reasons it gives in
// a row, each for as long as it lasts.
type phase struct {
	until int
	see   second
	want  string
}

func (s second) with(change func(*second)) second {
	change(&s)
	return s
}

func TestEachTargetHasItsReason(t *testing.T) {
	blind := sees(0).with(func(s *second) { s.Valid = false })
	exhausted := sees(1).with(func(s *second) { s.Exhausted = true })
	small := sees(1).with(func(s *second) { s.Most = 10 })
	used := small.with(func(s *second) { s.Assigned = 12 })
	full := used.with(func(s *second) { s.Exhausted = true })
	slow := sees(36).with(func(s *second) { s.latency = 5 })
	c := Default()
	c.Stable, c.BurstWindow, c.Delay = 10*time.Second, time.Second, 20*time.Second
	undelayed := c
	undelayed.Delay = 0
	for _, tt := range []struct {
		name   string
		config Config
		owned  int
		phases []phase
	}{
		{"a start, and down in steps", c, 48, []phase{
			{100, sees(5), "1:hold-boot 11:hold-interval 30:release 31:hold-interval 60:release 61:steady"},
			{101, sees(20), "101:up"},
			{110, sees(20), "102:steady"},
			{200, sees(5), "111:hold-delay 130:release 131:steady"},
			{220, blind, "201:steady"},
			{240, exhausted, "221:exhausted"},
			{250, sees(1), "241:up 242:steady"},
			{400, small, "251:hold-interval 260:release 261:clamped"}, // the exhausted subnet's at 230 counts
			{420, used, "401:up 402:clamped"},
			{440, exhausted, "421:exhausted"},
			{450, full, "441:clamped"},
		}},
		{"what can't be read holds more than anything", c, 32, []phase{
			{50, sees(20), "1:steady"},
			{60, sees(1), "51:hold-delay"},
			{99, blind, "61:hold-delay 70:hold-unreadable"},
			{100, sees(1), "100:release"},
		}},
		{"a burst holds when the delay does not", undelayed, 16, []phase{
			{100, sees(1), "1:steady"},
			{103, slow, "101:up 102:steady"},
			{200, sees(1), "104:hold-burst 114:release 115:hold-interval 144:release 145:steady"},
			{220, sees(20), "201:up 202:steady"},
			{250, sees(5), "221:hold-stable 228:release 229:steady"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, now := newNode(tt.config, tt.owned), 0
			for _, p := range tt.phases {
				got, before := "", Reason("")
				for now < p.until {
					now++
					if d := n.tick(now, p.see); d.Reason != before {
						got, before = fmt.Sprintf("%s %d:%s", got, now, d.Reason), d.Reason
					}
				}
				if got = strings.TrimSpace(got); got != p.want {
					t.Errorf("until %d: %s, want %s", p.until, got, p.want)
				}
			}
		})
	}
}
