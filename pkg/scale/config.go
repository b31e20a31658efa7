// Package scale decides how many addresses a node's pool should have. The scaling
// equation of sources/cns-scaling-equation.md says how many the pods need now; the
// stabiliser lets the pool grow at once and shrink late, slowly and in whole
// batches. It is pure: whole numbers only, time is an argument, and what it has to
// remember is a State that the caller keeps.
package scale

import (
	"fmt"
	"time"
)

// Strategy says how the pool's size follows the pods.
type Strategy uint8

// The strategies. Equation computes the size in one step; Reactive is the
// monitor it replaces, one batch at a time, kept to compare with. KPA follows the mean
// of the used addresses, as Knative's autoscaler does with pods.
const (
	Equation Strategy = iota
	Reactive
	KPA
)

// String returns "equation", "reactive" or "kpa".
func (s Strategy) String() string {
	switch s {
	case Reactive:
		return "reactive"
	case KPA:
		return "kpa"
	}
	return "equation"
}

// ParseStrategy is the inverse of Strategy.String.
func ParseStrategy(name string) (Strategy, error) {
	switch name {
	case "equation":
		return Equation, nil
	case "reactive":
		return Reactive, nil
	case "kpa":
		return KPA, nil
	}
	return 0, fmt.Errorf("unknown strategy %q: must be equation, reactive or kpa", name)
}

// Form says what becomes of the primary addresses when they are counted.
type Form uint8

// The forms. Safe keeps the free-space guarantee for what pods can use; Document
// subtracts the primaries after rounding, as sources/cns-scaling-equation.md has
// it, and can leave fewer addresses than pods.
const (
	Safe Form = iota
	Document
)

// String returns "safe" or "document".
func (f Form) String() string {
	if f == Document {
		return "document"
	}
	return "safe"
}

// ParseForm is the inverse of Form.String.
func ParseForm(name string) (Form, error) {
	switch name {
	case "safe":
		return Safe, nil
	case "document":
		return Document, nil
	}
	return 0, fmt.Errorf("unknown form %q: must be safe or document", name)
}

// Config is how a pool is sized. The zero Config is not valid; see Default.
type Config struct {
	Strategy       Strategy
	Form           Form
	CountPrimaries bool // align primaries plus secondaries to the batch, not secondaries alone

	Batch   int // addresses: B
	MinFree int // percent of a batch: 100 mf
	MaxFree int // percent of a batch: 100 Mf, at least MinFree+100
	MinPool int // addresses; never fewer

	Stable          time.Duration // window of the mean demand
	Delay           time.Duration // window of the highest demand: the main damper
	BurstWindow     time.Duration // window that burst is judged by
	BurstPercent    int           // of the pool: at or above it no address is released
	ShrinkPercent   int           // over 100: a step down divides the pool by at most this
	ReleaseInterval time.Duration // between two steps down
	ExhaustedSpare  int           // addresses kept free where the subnet has no more
	ExhaustedDelay  time.Duration // window of the highest demand then

	KPA KPAConfig
}

// Normal returns c without what its strategy does not look at.
func (c Config) Normal() Config {
	c.Batch = max(c.Batch, 1)
	if c.Strategy == KPA {
		c.MinFree, c.MaxFree, c.Form = 0, 100, Safe // Utilization says what is free
	} else {
		c.KPA = KPAConfig{}
	}
	return c
}

// Default returns the settings that suit a node of some tens of pods: batches of
// 16 addresses, half a batch free, no address released within two minutes.
func Default() Config {
	return Config{
		Batch:           16,
		MinFree:         50,
		MaxFree:         150,
		Stable:          60 * time.Second,
		Delay:           120 * time.Second,
		BurstWindow:     6 * time.Second,
		BurstPercent:    200,
		ShrinkPercent:   200,
		ReleaseInterval: 30 * time.Second,
		ExhaustedSpare:  1,
		ExhaustedDelay:  10 * time.Second,
		KPA:             DefaultKPA(),
	}
}
