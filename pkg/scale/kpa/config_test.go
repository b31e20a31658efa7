package kpa

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidateNamesWhatIsWrong(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.TotalTargetValue = 1000 }, "target-value, total-target-value: 100, 1000: one must be over 0, the other 0"},
		{func(c *Config) { c.TargetValue = 0 }, "target-value, total-target-value: 0, 0: one must be over 0, the other 0"},
		{func(c *Config) { c.TargetValue = math.NaN() }, "target-value, total-target-value: NaN, 0: one must be over 0, the other 0"},
		{func(c *Config) { c.MaxScaleUpRate = 1 }, "max-scale-up-rate: 1: must be a number over 1"},
		{func(c *Config) { c.MaxScaleUpRate = math.NaN() }, "max-scale-up-rate: NaN: must be a number over 1"},
		{func(c *Config) { c.MaxScaleDownRate = 1 }, "max-scale-down-rate: 1: must be a number over 1"},
		{func(c *Config) { c.BurstThreshold = math.NaN() }, "burst-threshold: NaN: must be a number"},
		{func(c *Config) { c.BurstWindowPercentage = 0.5 }, "burst-window-percentage: 0.5: must be 1 to 100"},
		{func(c *Config) { c.StableWindow = 4 * sec }, "stable-window: 4s: must be 5s to 10m0s, in whole seconds"},
		{func(c *Config) { c.StableWindow = 60*sec + 1 }, "stable-window: 1m0.000000001s: must be 5s to 10m0s, in whole seconds"},
		{func(c *Config) { c.ScaleDownDelay = -sec }, "scale-down-delay: -1s: must be whole seconds, not negative"},
		{func(c *Config) { c.MinScale = -1 }, "min-scale: -1: must not be negative"},
		{func(c *Config) { c.MinScale, c.MaxScale = 5, 4 }, "max-scale: 4: must be 0 for none, or at least min-scale 5"},
		{func(c *Config) { c.ActivationScale = 0 }, "activation-scale: 0: must be at least 1"},
		{func(c *Config) { c.ActivationScale, c.MaxScaleDownRate = 0, 0 },
			"max-scale-down-rate: 0: must be a number over 1\nactivation-scale: 0: must be at least 1"},
	} {
		c := Default()
		tt.change(&c)
		if err := c.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	for stable, want := range map[time.Duration]time.Duration{60 * sec: 6 * sec, 5 * sec: sec, 15 * sec: 1500 * time.Millisecond} {
		if got := (Config{StableWindow: stable, BurstWindowPercentage: 10}).BurstWindow(); got != want {
			t.Errorf("burst window of %s is %s, want %s", stable, got, want)
		}
	}
	// A burst window of a second and a half is two buckets.
	c := Default()
	c.StableWindow = 15 * sec
	s, err := NewScaler(c, false, 0)
	if err != nil || len(s.Burst.Buckets) != 2 {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := NewScaler(Config{}, false, 0); err == nil || !strings.Contains(err.Error(), "stable-window") {
		t.Errorf("the zero configuration is accepted: %v", err)
	}
}
