package pool

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
)

var modeNames = [...]string{Batch: "batch", Burstable: "burstable", BestEffort: "besteffort"}

// String returns the mode's name in configuration files and in the status.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode is the inverse of Mode.String.
func ParseMode(name string) (Mode, error) {
	for m, n := range modeNames {
		if n == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("unknown pool mode %q: must be batch, burstable or besteffort", name)
}

// mostSlots is more than any node holds; below it no product of settings overflows.
const mostSlots = 1 << 16

// mostPlaces is the most that can be kept for topologies: more than nodes have.
const mostPlaces = 1024

// Validate returns all that is wrong, each error with the name that the setting
// has in a configuration file. Settings of other modes are not checked, so that changing the
// mode is changing one key, but for maxAboveWatermark.
func (c Config) Validate() error {
	errs := []error{c.Scale.Validate()}
	if int(c.Mode) >= len(modeNames) {
		errs = append(errs, fmt.Errorf("mode: %d: must be batch, burstable or besteffort", c.Mode))
	}
	errs = append(errs,
		checkRange("firstENI", c.FirstENI, 0, 1),
		checkRange("maxAllocate", c.MaxAllocate, 0, mostSlots),
		checkRange("maxAllocateENI", c.MaxAllocateENI, 0, eni.MaxIndex+1),
		checkRange("maxIPsPerENI", c.MaxIPsPerENI, 0, mostSlots),
		checkRange("preAllocateENI", c.PreAllocateENI, 0, eni.MaxIndex+1),
		checkRange("topologyPlaces", c.TopologyPlaces, 0, mostPlaces),
		checkRange("minAllocate", c.MinAllocate, 0, mostSlots),
		checkRange("preAllocate", c.PreAllocate, 0, mostSlots),
		checkRange("maxAboveWatermark", c.MaxAboveWatermark, 0, mostSlots),
		c.validateBurstable(), c.validateMost(), c.validateModeChange())
	return errors.Join(errs...)
}

func (c Config) validateBurstable() error {
	const name = "burstableMultiple (burstableMehrfachENI)"
	switch {
	case c.Mode != Burstable:
		return checkRange(name, c.Multiple, 0, eni.MaxIndex)
	case c.Multiple == 0:
		return fmt.Errorf("%s: 0: is no burstable pool: set mode to batch or besteffort, or keep at least 1 ENI free", name)
	}
	return checkRange(name, c.Multiple, 1, eni.MaxIndex)
}

// validateMost refuses a pool that is larger at its start than it ever may be.
func (c Config) validateMost() error {
	var errs []error
	if c.MaxAllocateENI > 0 && c.PreAllocateENI > c.MaxAllocateENI {
		errs = append(errs, fmt.Errorf("preAllocateENI: %d: must be at most maxAllocateENI, %d", c.PreAllocateENI, c.MaxAllocateENI))
	}
	if c.MaxIPsPerENI == 1 {
		errs = append(errs, errors.New("maxIPsPerENI: 1: must be at least 2, as the primary address is for no pod"))
	}
	if c.MaxAllocate <= 0 {
		return errors.Join(errs...)
	}
	// Only what the mode goes by: agent.yaml may keep the other modes' keys, so that going back is one change.
	check := func(name string, value int) {
		if value > c.MaxAllocate {
			errs = append(errs, fmt.Errorf("%s: %d: must be at most maxAllocate, %d", name, value, c.MaxAllocate))
		}
	}
	switch c.Mode {
	case Batch:
		check("batch", c.Scale.Batch)
		check("minPool", c.Scale.MinPool)
	case BestEffort:
		check("minAllocate", c.MinAllocate)
	}
	return errors.Join(errs...)
}

// validateModeChange keeps a node that was set up with watermarks best effort
// until somebody says otherwise (sources/cce-planned-cluster-mode.md, 3.2.4).
func (c Config) validateModeChange() error {
	if c.MaxAboveWatermark <= 0 || c.Mode == BestEffort {
		return nil
	}
	return fmt.Errorf("maxAboveWatermark: %d: belongs to mode besteffort and this is mode %s: "+
		"to keep the node as it is set mode to besteffort, to change its mode remove maxAboveWatermark", c.MaxAboveWatermark, c.Mode)
}

func checkRange(name string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s: %d: must be %d to %d", name, v, low, high)
	}
	return nil
}
