package scale

// Reason says in a word why a target is what it is.
type Reason string

// The reasons. Those with hold in their name say why a pool is larger than its
// pods need it now.
const (
	Steady         Reason = "steady"          // as large as the pods need it
	Up             Reason = "up"              // it grows
	Release        Reason = "release"         // it shrinks
	HoldDelay      Reason = "hold-delay"      // the demand was higher within Delay
	HoldStable     Reason = "hold-stable"     // the mean demand of Stable is higher
	HoldBurst      Reason = "hold-burst"      // the demand bursts, or did within Stable
	HoldBoot       Reason = "hold-boot"       // the demand was not readable for Stable yet
	HoldUnreadable Reason = "hold-unreadable" // the demand can't be read
	HoldInterval   Reason = "hold-interval"   // the last release was within ReleaseInterval, or Keep holds what is left
	Exhausted      Reason = "exhausted"       // the subnet is: the pods' addresses and the spare
	Clamped        Reason = "clamped"         // a bound rules: MinPool, Most or Assigned
)

// explainEquation explains the target. It runs before that becomes s.Target, which is still the
// last one.
func (z *sizing) explainEquation(target int) Reason {
	switch {
	case target > z.unheld && (target == z.s.Target || z.o.Exhausted):
		return z.nameHolder()
	case z.o.Exhausted:
		return Exhausted
	case target < z.s.Target:
		return Release
	case target > z.s.Target:
		return Up
	case z.unheld > z.need && z.unheld == z.delayed:
		return HoldDelay
	case z.unheld > z.need:
		return HoldStable
	case z.need != z.c.unbounded(z.s.Demand, z.o.Primaries):
		return Clamped
	}
	return Steady
}

// nameHolder names what keeps the target above unheld.
func (z *sizing) nameHolder() Reason {
	switch blind := z.holdReason(); {
	case blind != "":
		return blind
	case z.isFrozen():
		return HoldBurst
	case z.isResting() && !z.o.Exhausted:
		return HoldInterval
	}
	return Clamped
}
