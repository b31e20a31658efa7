package kpa

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config is how an autoscaler works. There is no grace period of a scale to zero:
// nothing ever read it.
type Config struct {
	TargetValue      float64 // of the metric for each pod; 0: TotalTargetValue counts
	TotalTargetValue float64 // of the metric for all pods at once

	MaxScaleUpRate   float64 // over 1: pods grow at most by this factor in a step
	MaxScaleDownRate float64 // over 1: they shrink at most by this divisor

	BurstThreshold        float64 // a burst is this many times the pods that are ready: 2, not 200
	BurstWindowPercentage float64 // of StableWindow, the window a burst is seen in

	StableWindow   time.Duration
	ScaleDownDelay time.Duration // a fall counts when it lasted this long; 0: at once

	MinScale        int // 0: none
	MaxScale        int // 0: none
	ActivationScale int // fewest pods when there are any
}

// Default returns the usual settings: 100 of the metric for a pod, no limits.
func Default() Config {
	return Config{
		TargetValue:           100,
		MaxScaleUpRate:        1000,
		MaxScaleDownRate:      2,
		BurstThreshold:        2,
		BurstWindowPercentage: 10,
		StableWindow:          time.Minute,
		ActivationScale:       1,
	}
}

// BurstWindow returns the window that a burst is seen in, at least a second.
func (c Config) BurstWindow() time.Duration {
	return max(time.Second, time.Duration(float64(c.StableWindow)*c.BurstWindowPercentage/100))
}

// Validate returns all that is wrong. Rates that are no finite numbers would
// overflow the number of pods.
func (c Config) Validate() error {
	return errors.Join(
		check(positive(c.TargetValue) && c.TotalTargetValue == 0 || c.TargetValue == 0 && positive(c.TotalTargetValue),
			"target-value, total-target-value: %v, %v: one must be over 0, the other 0", c.TargetValue, c.TotalTargetValue),
		check(finite(c.MaxScaleUpRate) && c.MaxScaleUpRate > 1, "max-scale-up-rate: %v: must be a number over 1", c.MaxScaleUpRate),
		check(finite(c.MaxScaleDownRate) && c.MaxScaleDownRate > 1, "max-scale-down-rate: %v: must be a number over 1", c.MaxScaleDownRate),
		check(finite(c.BurstThreshold), "burst-threshold: %v: must be a number", c.BurstThreshold),
		check(c.BurstWindowPercentage >= 1 && c.BurstWindowPercentage <= 100, "burst-window-percentage: %v: must be 1 to 100", c.BurstWindowPercentage),
		check(whole(c.StableWindow) && c.StableWindow >= 5*time.Second && c.StableWindow <= 10*time.Minute,
			"stable-window: %s: must be 5s to 10m0s, in whole seconds", c.StableWindow),
		check(whole(c.ScaleDownDelay) && c.ScaleDownDelay >= 0, "scale-down-delay: %s: must be whole seconds, not negative", c.ScaleDownDelay),
		check(c.MinScale >= 0, "min-scale: %d: must not be negative", c.MinScale),
		check(c.MaxScale == 0 || c.MaxScale >= max(c.MinScale, 1), "max-scale: %d: must be 0 for none, or at least min-scale %d", c.MaxScale, c.MinScale),
		check(c.ActivationScale >= 1, "activation-scale: %d: must be at least 1", c.ActivationScale),
	)
}

func check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func finite(v float64) bool      { return !math.IsNaN(v) && !math.IsInf(v, 0) }
func positive(v float64) bool    { return finite(v) && v > 0 }
func whole(d time.Duration) bool { return d%time.Second == 0 }
