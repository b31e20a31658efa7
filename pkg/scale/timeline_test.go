package scale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// runtimeLog is what a node that starts its pods one by one went through.
type runtimeLog struct {
	ticks, publishes, failed int
	events                   []string
}

// startPods is the timeline of sources/cns-watch-pods.md: in each tick a CNI ADD,
// which fails when no address is free and comes again in the next, then a look at
// the pool. What is asked for is there latency ticks later.
func startPods(c Config, owned, assigned, pods, latency int) runtimeLog {
	var log runtimeLog
	note := func(t int, format string, args ...any) {
		log.events = append(log.events, fmt.Sprintf("t%d ", t)+fmt.Sprintf(format, args...))
	}
	s := New(c, owned, 0)
	var coming []delivery
	stalled := false
	for t := 0; assigned < pods; t++ {
		for len(coming) > 0 && coming[0].at <= t {
			owned, coming, stalled = coming[0].owned, coming[1:], false
			note(t, "%d owned", owned)
		}
		if assigned < owned {
			assigned++
		} else if log.failed++; !stalled {
			stalled = true
			note(t, "stall")
		}
		o := Observation{Demand: pods, Assigned: assigned, Owned: owned, Most: 250, Valid: true}
		before := s.Target
		var d Decision
		if s, d = c.Decide(s, time.Duration(t)*time.Second, o); d.Target != before {
			log.publishes++
			coming = append(coming, delivery{t + latency, d.Target})
			note(t, "%d used, request %d", assigned, d.Target)
		}
		log.ticks = t + 1
	}
	note(log.ticks, "done")
	return log
}

// The document's last pods are P35: 36 pods from P0 on, not P36.
func TestTheTimelinesOfTheDocument(t *testing.T) {
	for _, tt := range []struct {
		config Config
		want   string
	}{
		{reactive(16, 50, 150), "t7 9 used, request 32, t15 stall, t27 32 owned, t35 25 used, request 48, t43 stall, t55 48 owned, t59 done"},
		{plain(16, 50), "t0 2 used, request 48, t15 stall, t20 48 owned, t40 done"},
	} {
		if got := strings.Join(startPods(tt.config, 16, 1, 36, 20).events, ", "); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.config.Strategy, got, tt.want)
		}
	}
}

func TestTheEquationSavesRoundTripsAndFailedPods(t *testing.T) {
	type counts struct{ ticks, publishes, failed int }
	for _, tt := range []struct {
		latency             int
		reactive, proactive counts
	}{
		{5, counts{35, 2, 0}, counts{35, 1, 0}},
		{10, counts{39, 2, 4}, counts{35, 1, 0}},
		{20, counts{59, 2, 24}, counts{40, 1, 5}},
		{60, counts{139, 2, 104}, counts{80, 1, 45}},
		{300, counts{619, 2, 584}, counts{320, 1, 285}},
	} {
		for c, want := range map[*Config]counts{new(reactive(16, 50, 150)): tt.reactive, new(plain(16, 50)): tt.proactive} {
			log := startPods(*c, 16, 1, 36, tt.latency)
			if got := (counts{log.ticks, log.publishes, log.failed}); got != want {
				t.Errorf("%s, %d ticks: %+v, want %+v", c.Strategy, tt.latency, got, want)
			}
		}
	}
}

// Reactive needs a round trip for each batch, as only addresses that pods have
// cross the next threshold: not one for each change of more than half a batch, as
// sources/cns-background.md may be read.
func TestRoundTripsFromOneBatchToAllPods(t *testing.T) {
	for _, tt := range []struct{ pods, request, trips int }{
		{8, 16, 0}, {9, 32, 1}, {24, 32, 1}, {25, 48, 2}, {36, 48, 2}, {41, 64, 3}, {75, 96, 5}, {110, 128, 7},
		{200, 208, 12}, {242, 256, 15}, {250, 272, 15},
	} {
		if got := Request(16, 50, tt.pods); got != tt.request {
			t.Errorf("%d pods: Request %d, want %d", tt.pods, got, tt.request)
		}
		if got := startPods(reactive(16, 50, 150), 16, 1, tt.pods, 5).publishes; got != tt.trips {
			t.Errorf("%d pods: reactive asks %d times, want %d", tt.pods, got, tt.trips)
		}
		if got, want := startPods(plain(16, 50), 16, 1, tt.pods, 5).publishes, min(tt.trips, 1); got != want {
			t.Errorf("%d pods: the equation asks %d times, want %d", tt.pods, got, want)
		}
	}
}

func TestDownTheMonitorNeedsNoRoundTrip(t *testing.T) {
	c := reactive(16, 50, 150)
	o := Observation{Demand: 1, Assigned: 1, Owned: 48, Most: 250, Valid: true}
	s := New(c, 48, 0)
	var targets []int
	for now := range 3 {
		var d Decision
		s, d = c.Decide(s, time.Duration(now)*time.Second, o)
		o.Releasing = 48 - d.Target
		targets = append(targets, d.Target)
	}
	if want := []int{32, 16, 16}; !slices.Equal(targets, want) {
		t.Errorf("targets %v, want %v", targets, want)
	}
	if got := plain(16, 50).Need(1, 0, 250); got != 16 {
		t.Errorf("the equation needs %d, want 16 at once", got)
	}
}
