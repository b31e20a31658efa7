package scale

import (
	"errors"
	"fmt"
	"time"
)

// mostAddresses is more than any node or subnet of it has; below it no product of
// settings overflows.
const mostAddresses = 1 << 16

// mostPercent is a thousand batches, or a pool a thousand times too small.
const mostPercent = 100_000

// Validate returns all that is wrong, each error with the name that the setting
// has in a configuration file.
func (c Config) Validate() error {
	return errors.Join(
		c.validateKinds(),
		checkNumber("batch", c.Batch, 1, mostAddresses),
		checkPercent("minFree", c.MinFree, 0, 1000),
		c.validateMaxFree(),
		checkNumber("minPool", c.MinPool, 0, mostAddresses),
		checkSpan("stable", c.Stable, 5*time.Second, 10*time.Minute),
		checkSpan("delay", c.Delay, 0, time.Hour),
		checkSpan("burstWindow", c.BurstWindow, time.Second, max(c.Stable, time.Second)),
		checkPercent("burstPercent", c.BurstPercent, 101, mostPercent),
		checkPercent("shrinkPercent", c.ShrinkPercent, 101, mostPercent),
		checkSpan("releaseInterval", c.ReleaseInterval, time.Second, 24*time.Hour),
		checkNumber("exhaustedSpare", c.ExhaustedSpare, 0, mostAddresses),
		checkSpan("exhaustedDelay", c.ExhaustedDelay, 0, time.Hour),
		c.validateKPA(),
	)
}

func (c Config) validateKinds() error {
	var errs []error
	if c.Strategy > KPA {
		errs = append(errs, fmt.Errorf("strategy: %d: must be equation, reactive or kpa", c.Strategy))
	}
	if c.Form > Document {
		errs = append(errs, fmt.Errorf("form: %d: must be safe or document", c.Form))
	}
	return errors.Join(errs...)
}

// validateKPA asks nothing of those who use another strategy.
func (c Config) validateKPA() error {
	if c.Strategy != KPA {
		return nil
	}
	var form error
	if c.KPA.Form > KPAKnative {
		form = fmt.Errorf("kpaForm: %d: must be document or knative", c.KPA.Form)
	}
	return errors.Join(form,
		checkPercent("utilization", c.KPA.Utilization, 1, 100),
		checkPercent("grow", c.KPA.GrowPercent, 101, mostPercent),
		checkNumber("activation", c.KPA.Activation, 1, mostAddresses))
}

// validateMaxFree is the rule of convergence of sources/cns-background.md. Growing
// ends below m+B free addresses and shrinking above M-B, so with M some addresses below
// m+B each would start the other again. Equality is enough: it grows below m only and
// shrinks above M only.
func (c Config) validateMaxFree() error {
	if c.MaxFree < c.MinFree+100 {
		return fmt.Errorf("maxFree: %d: must be at least minFree + 100 = %d percent, or the pool grows and shrinks for ever (Mf >= mf+1)",
			c.MaxFree, c.MinFree+100)
	}
	return checkPercent("maxFree", c.MaxFree, 0, mostPercent)
}

func checkNumber(name string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s: %d: must be %d to %d", name, v, low, high)
	}
	return nil
}

func checkPercent(name string, v, low, high int) error {
	if err := checkNumber(name, v, low, high); err != nil {
		return fmt.Errorf("%w percent", err)
	}
	return nil
}

// checkSpan refuses parts of a second too: the windows count whole ones.
func checkSpan(name string, v, low, high time.Duration) error {
	if v < low || v > high {
		return fmt.Errorf("%s: %s: must be %s to %s", name, v, low, high)
	}
	if v%time.Second != 0 {
		return fmt.Errorf("%s: %s: must be whole seconds", name, v)
	}
	return nil
}
