package scale

import (
	"math"
	"testing"
	"time"
)

func TestTheDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Strategy = 3 }, "strategy: 3: must be equation, reactive or kpa"},
		{func(c *Config) { c.Form = 9 }, "form: 9: must be safe or document"},
		{func(c *Config) { c.Batch = 0 }, "batch: 0: must be 1 to 65536"},
		{func(c *Config) { c.MinFree, c.MaxFree = -1, 150 }, "minFree: -1: must be 0 to 1000 percent"},
		{func(c *Config) { c.MinFree, c.MaxFree = 1001, 1101 }, "minFree: 1001: must be 0 to 1000 percent"},
		{func(c *Config) { c.MaxFree = 149 },
			"maxFree: 149: must be at least minFree + 100 = 150 percent, or the pool grows and shrinks for ever (Mf >= mf+1)"},
		{func(c *Config) { c.MaxFree = math.MaxInt }, "maxFree: 9223372036854775807: must be 0 to 100000 percent"},
		{func(c *Config) { c.MinPool = -1 }, "minPool: -1: must be 0 to 65536"},
		{func(c *Config) { c.Stable, c.BurstWindow = 4*time.Second, time.Second }, "stable: 4s: must be 5s to 10m0s"},
		{func(c *Config) { c.Stable = 601 * time.Second }, "stable: 10m1s: must be 5s to 10m0s"},
		{func(c *Config) { c.Stable = 60500 * time.Millisecond }, "stable: 1m0.5s: must be whole seconds"},
		{func(c *Config) { c.Delay = -time.Second }, "delay: -1s: must be 0s to 1h0m0s"},
		{func(c *Config) { c.Delay = 2 * time.Hour }, "delay: 2h0m0s: must be 0s to 1h0m0s"},
		{func(c *Config) { c.BurstWindow = 0 }, "burstWindow: 0s: must be 1s to 1m0s"},
		{func(c *Config) { c.BurstWindow = 61 * time.Second }, "burstWindow: 1m1s: must be 1s to 1m0s"},
		{func(c *Config) { c.BurstPercent = 100 }, "burstPercent: 100: must be 101 to 100000 percent"},
		{func(c *Config) { c.ShrinkPercent = 100 }, "shrinkPercent: 100: must be 101 to 100000 percent"},
		{func(c *Config) { c.ReleaseInterval = 0 }, "releaseInterval: 0s: must be 1s to 24h0m0s"},
		{func(c *Config) { c.ExhaustedSpare = -1 }, "exhaustedSpare: -1: must be 0 to 65536"},
		{func(c *Config) { c.ExhaustedDelay = -time.Second }, "exhaustedDelay: -1s: must be 0s to 1h0m0s"},
		{func(c *Config) { c.Batch, c.Delay = 0, -time.Second }, "batch: 0: must be 1 to 65536\ndelay: -1s: must be 0s to 1h0m0s"},
	} {
		c := Default()
		tt.change(&c)
		if err := c.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

// The text says "greater than", but a threshold exactly a batch above is enough: a
// pool grows below m only and shrinks above M only.
func TestThresholdsABatchApartConverge(t *testing.T) {
	for used := range 300 {
		if targets := endless(plain(100, 50), used); len(targets) != 1 {
			t.Errorf("%d pods: the pool goes on between %v", used, targets)
		}
	}
	closer := plain(100, 50)
	closer.MaxFree -= 2
	if targets := endless(closer, 51); len(targets) != 2 {
		t.Errorf("with closer thresholds it rests at %v: the rule is too strict", targets)
	}
}

// endless returns the targets that the monitor still takes after a long time.
func endless(c Config, used int) map[int]bool {
	c.Strategy = Reactive
	n := newNode(c, c.Batch)
	targets := map[int]bool{}
	for now := 1; now < 200; now++ {
		d := n.tick(now, second{Observation: Observation{Demand: used, Assigned: used, Most: 1000, Valid: true}})
		if now > 100 {
			targets[d.Target] = true
		}
	}
	return targets
}

func TestNamesAreReadBack(t *testing.T) {
	for _, s := range []Strategy{Equation, Reactive, KPA} {
		if got, err := ParseStrategy(s.String()); err != nil || got != s {
			t.Errorf("%s is read as %s, %v", s, got, err)
		}
	}
	for _, f := range []Form{Safe, Document} {
		if got, err := ParseForm(f.String()); err != nil || got != f {
			t.Errorf("%s is read as %s, %v", f, got, err)
		}
	}
	_, err := ParseStrategy("v1")
	if want := `unknown strategy "v1": must be equation, reactive or kpa`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = ParseForm("")
	if want := `unknown form "": must be safe or document`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
