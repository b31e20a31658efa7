package kpa

import "time"

// Scaler is an autoscaler with its two windows, which are fed by the same values.
type Scaler struct {
	Stable     *Window     `json:"stable"`
	Burst      *Window     `json:"burst"`
	Autoscaler *Autoscaler `json:"autoscaler"`
}

// NewScaler returns one that starts at a time, with linear or weighted windows.
func NewScaler(c Config, weighted bool, now time.Duration) (*Scaler, error) {
	a, err := NewAutoscaler(c, now)
	if err != nil {
		return nil, err
	}
	stable, err := NewWindow(c.StableWindow, time.Second)
	if err != nil {
		return nil, err
	}
	burst, err := NewWindow(c.BurstWindow(), time.Second)
	if err != nil {
		return nil, err
	}
	stable.Weighted, burst.Weighted = weighted, weighted
	return &Scaler{Stable: stable, Burst: burst, Autoscaler: a}, nil
}

// Record takes a value of the metric.
func (s *Scaler) Record(t time.Duration, v float64) {
	s.Stable.Record(t, v)
	s.Burst.Record(t, v)
}

// Scale recommends a number of pods. With nothing in a window it is not valid.
func (s *Scaler) Scale(now time.Duration, ready int) Result {
	if s.Stable.Empty(now) || s.Burst.Empty(now) {
		return Result{}
	}
	return s.Autoscaler.Scale(now, s.Stable.Average(now), s.Burst.Average(now), ready)
}

// Combine makes one number of what several scalers recommend: the largest, within
// least and most, 0 or less for none. Without a scaler it is the least; if none is
// valid the pods stay as many as are ready, whatever the bounds.
func Combine(results []Result, ready, least, most int) int {
	least = max(least, 0)
	if most > 0 {
		most = max(most, least)
	}
	desired, valid := 0, len(results) == 0
	for _, r := range results {
		if r.Valid {
			desired, valid = max(desired, r.Desired), true
		}
	}
	if !valid {
		return ready
	}
	return bound(desired, least, most)
}
