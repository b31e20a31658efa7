package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fine is a node with 5 pods, 11 free addresses and room for more.
func fine() Observation {
	return Observation{Usable: true, Have: 16, Used: 5, Free: 11, Demand: 5, Target: 16, Most: 57}
}

// full is a node whose subnet has no more, with pods that lack an address.
func full(lacking int) Observation {
	return Observation{Usable: true, Have: 16, Used: 16, Demand: 16 + lacking, Unserved: lacking, Target: 17 + lacking, Most: 57,
		Stuck: true, Cause: Cause{Reason: SubnetExhausted, What: "no addresses left in subnet-a"}}
}

// spared is that node when it gave its spare addresses away: all pods are served.
func spared() Observation {
	o := full(0)
	o.Have, o.Used, o.Demand, o.Free, o.Target = 6, 5, 5, 1, 6
	return o
}

// at is an observation at a second, and what is to be reported then.
type at struct {
	second   int
	o        Observation
	reason   string
	capacity int
}

func play(t *testing.T, c Config, steps []at) {
	t.Helper()
	s := New()
	for _, step := range steps {
		now := time.Hour + time.Duration(step.second)*time.Second
		var r Report
		s, r = Judge(c, s, now, step.o)
		if r.Reason != step.reason || r.Capacity != step.capacity || r.Faulty != (step.reason != AddressesAvailable) {
			t.Errorf("at %ds: %+v, want %s and a capacity of %d", step.second, r, step.reason, step.capacity)
		}
		again, r2 := Judge(c, s, now, step.o)
		if diff := cmp.Diff(s, again) + cmp.Diff(r, r2); diff != "" {
			t.Errorf("at %ds the same call again changes:\n%s", step.second, diff)
		}
	}
}

func without(o Observation, change func(*Observation)) Observation {
	change(&o)
	return o
}

func TestAReportComesAfterTheGraceAndGoesAfterTheQuietTime(t *testing.T) {
	const ok = AddressesAvailable
	growing := without(full(3), func(o *Observation) { o.Stuck, o.Cause = false, Cause{} })
	throttled := without(full(3), func(o *Observation) { o.Cause = Cause{Reason: CloudThrottled, What: "throttled"} })
	noCache := Observation{Most: -1}
	for _, tt := range []struct {
		name  string
		steps []at
	}{
		{"a lack that lasts", []at{{0, fine(), ok, 57}, {10, full(3), ok, 57}, {39, full(3), ok, 57}, {40, full(3), SubnetExhausted, 16},
			{100, full(3), SubnetExhausted, 16}, {110, fine(), SubnetExhausted, 16}, {169, fine(), SubnetExhausted, 16}, {170, fine(), ok, 57}}},
		{"a lack that is soon over", []at{{0, full(3), ok, 57}, {29, full(3), ok, 57}, {30, fine(), ok, 57}, {31, full(3), ok, 57}, {60, full(3), ok, 57}, {61, full(3), SubnetExhausted, 16}}},
		{"a recovery that does not last", []at{{0, full(1), ok, 57}, {30, full(1), SubnetExhausted, 16}, {31, fine(), SubnetExhausted, 16},
			{90, fine(), SubnetExhausted, 16}, {90, full(1), SubnetExhausted, 16}, {91, fine(), SubnetExhausted, 16}, {150, fine(), SubnetExhausted, 16}, {151, fine(), ok, 57}}},
		{"all are served and none is free: the next one would not be", []at{{0, full(1), ok, 57}, {30, full(1), SubnetExhausted, 16},
			{40, full(0), SubnetExhausted, 16}, {600, full(0), SubnetExhausted, 16}, {601, spared(), SubnetExhausted, 6}, {661, spared(), ok, 6}}},
		{"served by what rests", []at{{0, without(full(2), func(o *Observation) { o.Cooling, o.Soon = 2, 2 }), ok, 57},
			{600, without(full(2), func(o *Observation) { o.Cooling, o.Soon = 2, 2 }), ok, 16}, {601, without(full(2), func(o *Observation) { o.Cooling, o.Soon = 2, 1 }), ok, 16},
			{631, without(full(2), func(o *Observation) { o.Cooling, o.Soon = 2, 1 }), SubnetExhausted, 16}}},
		{"more pods were bound than addresses are free", []at{{0, without(full(3), func(o *Observation) { o.Free, o.Used = 2, 14 }), ok, 57}, {30, without(full(3), func(o *Observation) { o.Free, o.Used = 2, 14 }), SubnetExhausted, 16}}},
		{"as many as are free", []at{{0, without(full(2), func(o *Observation) { o.Free, o.Used = 2, 14 }), ok, 57}, {300, without(full(2), func(o *Observation) { o.Free, o.Used = 2, 14 }), ok, 16}}},
		{"growth without a failure has longer", []at{{0, growing, ok, 57}, {119, growing, ok, 57}, {120, growing, NoFreeAddress, 16}}},
		{"one failure in a long growth", []at{{0, growing, ok, 57}, {31, throttled, CloudThrottled, 16}, {32, growing, CloudThrottled, 16}}},
		{"another reason is believed when it lasts", []at{{0, throttled, ok, 57}, {30, throttled, CloudThrottled, 16}, {40, full(3), CloudThrottled, 16},
			{50, throttled, CloudThrottled, 16}, {60, full(3), CloudThrottled, 16}, {89, full(3), CloudThrottled, 16}, {90, full(3), SubnetExhausted, 16}}},
		{"nothing in the way for a moment is no other reason", []at{{0, full(3), ok, 57}, {30, full(3), SubnetExhausted, 16}, {40, growing, SubnetExhausted, 16}, {99, growing, SubnetExhausted, 16}}},
		{"a full node is no fault", []at{{0, without(full(0), func(o *Observation) { o.Most, o.Stuck, o.Cause = 16, false, Cause{} }), ok, 16}, {600, without(full(0), func(o *Observation) { o.Most, o.Stuck, o.Cause = 16, false, Cause{} }), ok, 16}}},
		{"pods beyond what the node can hold", []at{{0, without(full(1), func(o *Observation) { o.Most, o.Cause = 16, Cause{Reason: AddressLimitReached, What: ""} }), ok, 16},
			{30, without(full(1), func(o *Observation) { o.Most, o.Cause = 16, Cause{Reason: AddressLimitReached, What: ""} }), AddressLimitReached, 16},
			{31, without(full(0), func(o *Observation) { o.Most, o.Stuck, o.Cause = 16, false, Cause{} }), AddressLimitReached, 16},
			{91, without(full(0), func(o *Observation) { o.Most, o.Stuck, o.Cause = 16, false, Cause{} }), ok, 16}}},
		{"no cache from the start", []at{{0, noCache, ok, -1}, {29, noCache, ok, -1}, {30, noCache, CacheUnusable, -1}, {31, fine(), CacheUnusable, 57}, {91, fine(), ok, 57}}},
		{"a cache that breaks leaves the capacity as it was", []at{{0, fine(), ok, 57}, {1, noCache, ok, 57}, {31, noCache, CacheUnusable, 57}}},
		{"a cloud that was never heard of, with free addresses", []at{{0, without(fine(), func(o *Observation) { o.Most = -1 }), ok, -1}, {900, fine(), ok, 57}}},
		{"whether more can be had is not known any more", []at{{0, full(1), ok, 57}, {30, full(1), SubnetExhausted, 16},
			{31, without(full(0), func(o *Observation) { o.Most, o.Stuck, o.Cause = -1, false, Cause{} }), SubnetExhausted, 16},
			{600, without(full(0), func(o *Observation) { o.Most, o.Stuck, o.Cause = -1, false, Cause{} }), SubnetExhausted, 16}}},
		{"numbers without a cache are none", []at{{0, fine(), ok, 57}, {10, without(full(0), func(o *Observation) { o.Usable, o.Cause = false, Cause{} }), ok, 57},
			{100, without(full(0), func(o *Observation) { o.Usable, o.Cause = false, Cause{} }), CacheUnusable, 57}}},
		{"an instance that carries no pods", []at{{0, Observation{Usable: true}, ok, 0}, {600, Observation{Usable: true}, ok, 0}}},
		{"a subnet that is exhausted from the start", []at{{0, without(full(2), func(o *Observation) { o.Have, o.Used = 0, 0 }), ok, 57}, {30, without(full(2), func(o *Observation) { o.Have, o.Used = 0, 0 }), SubnetExhausted, 0}}},
		{"the first address is told at once", []at{{0, without(full(2), func(o *Observation) { o.Have, o.Used = 0, 0 }), ok, 57}, {30, without(full(2), func(o *Observation) { o.Have, o.Used = 0, 0 }), SubnetExhausted, 0},
			{31, without(full(1), func(o *Observation) { o.Have, o.Used = 1, 1 }), SubnetExhausted, 1}, {60, without(full(1), func(o *Observation) { o.Have, o.Used = 2, 1 }), SubnetExhausted, 1},
			{61, without(full(1), func(o *Observation) { o.Have, o.Used = 2, 1 }), SubnetExhausted, 2}}},
		{"the limit was lowered below what pods have", []at{{0, without(fine(), func(o *Observation) { o.Most = 3 }), ok, 5}}},
	} {
		t.Run(tt.name, func(t *testing.T) { play(t, Default(), tt.steps) })
	}
}

// A reason that took the place of another one has lasted since it was seen, not since the fault.
func TestAReasonHasItsOwnTime(t *testing.T) {
	throttled := without(full(3), func(o *Observation) { o.Cause = Cause{Reason: CloudThrottled, What: "throttled"} })
	growing := without(full(3), func(o *Observation) { o.Stuck, o.Cause = false, Cause{} })
	s := New()
	for _, step := range []struct {
		second int
		o      Observation
		reason string
		since  int
	}{
		{30, throttled, CloudThrottled, 30}, {40, full(3), CloudThrottled, 30}, {69, full(3), CloudThrottled, 30},
		{70, full(3), SubnetExhausted, 40}, {200, full(3), SubnetExhausted, 40}, {201, growing, SubnetExhausted, 40},
	} {
		if s.Lacking == 0 {
			s, _ = Judge(Default(), s, time.Hour, step.o)
		}
		s, _ = Judge(Default(), s, time.Hour+time.Duration(step.second)*time.Second, step.o)
		if since := int((s.ReasonSince() - time.Hour).Seconds()); s.Reason != step.reason || since != step.since {
			t.Errorf("at %ds: %s since %ds, want %s since %ds", step.second, s.Reason, since, step.reason, step.since)
		}
	}
}

func TestWhereNothingFailedThatIsTheReason(t *testing.T) {
	for _, tt := range []struct {
		cause  string
		usable bool
		want   string
	}{
		{"", true, NoFreeAddress},
		{"", false, CacheUnusable},
		{"CloudForbidden", false, CloudForbidden},
		{"CloudThrottled", true, CloudThrottled},
		{"SomethingElse", true, NoFreeAddress},
	} {
		if got := (Observation{Usable: tt.usable, Cause: Cause{Reason: tt.cause}}).cause().Reason; got != tt.want {
			t.Errorf("%q, usable %v: %s, want %s", tt.cause, tt.usable, got, tt.want)
		}
	}
}

func TestTheTaintIsTheFaultsAndCanBeSwitchedOff(t *testing.T) {
	for _, taint := range []bool{true, false} {
		c := Default()
		c.Taint = taint
		s, healthy := Judge(c, New(), time.Hour, full(1))
		s, faulty := Judge(c, s, time.Hour+c.Grace, full(1))
		if healthy.Taint || faulty.Taint != taint || !faulty.Faulty {
			t.Errorf("taint %v: healthy %+v, faulty %+v", taint, healthy, faulty)
		}
		c.Taint = !taint // a configuration that is reloaded
		if _, r := Judge(c, s, time.Hour+c.Grace, full(1)); r.Taint == taint {
			t.Errorf("after the switch: %+v", r)
		}
	}
}

func TestNothingIsKnownBeforeANodeWasSeenOrIsFaulty(t *testing.T) {
	s, _ := Judge(Default(), New(), time.Second, Observation{Most: -1})
	if s.Known {
		t.Error("known without a cache")
	}
	if s, _ := Judge(Default(), s, 31*time.Second, Observation{Most: -1}); !s.Known {
		t.Error("a fault is something to report")
	}
	if s, _ := Judge(Default(), s, 2*time.Second, fine()); !s.Known {
		t.Error("a node that was seen is known")
	}
}
