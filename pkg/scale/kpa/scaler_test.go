package kpa

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/scale"
	"github.com/google/go-cmp/cmp"
)

// K53: silence is valid while the stable window lasts, though the burst window
// reads 0 after 6 s; then nothing is recommended.
func TestAScalerThatHearsNothing(t *testing.T) {
	for silence, want := range map[int]string{0: "3", 1: "3", 5: "3", 6: "3", 7: "invalid", 60: "invalid"} {
		s, err := NewScaler(Default(), false, -time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			s.Record(time.Duration(i)*sec, 300)
		}
		if got := s.Scale(time.Duration(59+silence)*sec, 3).String(); got != want {
			t.Errorf("K53: after %d s: %s, want %s", silence, got, want)
		}
	}
}

func TestCombine(t *testing.T) {
	some := []Result{{Desired: 3, Valid: true}, {Desired: 5, Valid: true}, {Desired: 90}}
	for _, tt := range []struct {
		name               string
		results            []Result
		ready, least, most int
		want               int
	}{
		{"K54: no scaler is the least", nil, 50, 2, 0, 2},
		{"K54: none valid keeps what is ready, whatever the bounds", []Result{{}, {}}, 50, 0, 10, 50},
		{"K54: the largest", some, 1, 0, 0, 5},
		{"K54: at most", some, 1, 0, 4, 4},
		{"a negative least is none", nil, 50, -3, 0, 0},
		{"a negative most is none", some, 1, 0, -1, 5},
		{"a most below the least is raised", some, 1, 8, 4, 8},
	} {
		if got := Combine(tt.results, tt.ready, tt.least, tt.most); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// K55: why a pool's growth takes no average. From 1 pod to many on 16 addresses the
// equation asks for all at once; averaged first, it asks for too few for up to 48
// seconds, as 30 pods on 16 are no burst.
func TestAveragesAreTooLateForAPool(t *testing.T) {
	type step struct{ after, need int }
	for _, tt := range []struct {
		pods     int
		weighted bool
		want     []step
	}{
		{36, false, []step{{6, 48}}}, {36, true, []step{{2, 48}}},
		{30, false, []step{{15, 32}, {48, 48}}}, {30, true, []step{{2, 32}, {8, 48}}},
		{20, false, []step{{23, 32}}}, {20, true, []step{{3, 32}}},
	} {
		c := Default()
		c.TargetValue = 1
		s, err := NewScaler(c, tt.weighted, -time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var got []step
		last := 16
		for now := range 240 {
			demand := 1.0
			if now >= 120 {
				demand = float64(tt.pods)
			}
			s.Record(time.Duration(now)*sec, demand)
			need := scale.Default().Need(s.Scale(time.Duration(now)*sec, 16).Desired, 0, 250)
			if now >= 120 && need > last {
				got, last = append(got, step{now - 119, need}), need
			}
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("K55: to %d, weighted %t (-want +got):\n%s", tt.pods, tt.weighted, diff)
		}
	}
}

func TestAScalerGoesOnAfterEncodingAndDecoding(t *testing.T) {
	c := Default()
	c.ScaleDownDelay = 30 * sec
	for _, weighted := range []bool{false, true} {
		s, err := NewScaler(c, weighted, 0)
		if err != nil {
			t.Fatal(err)
		}
		for now := range 200 {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			read := new(Scaler)
			if err := json.Unmarshal(text, read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s, read); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			at := time.Duration(now) * sec
			for _, each := range []*Scaler{s, read} {
				each.Record(at, float64(now*37%1000))
			}
			if want, got := s.Scale(at, 5), read.Scale(at, 5); got != want {
				t.Fatalf("at %d: %s, want %s", now, got, want)
			}
			s = read
		}
	}
}
