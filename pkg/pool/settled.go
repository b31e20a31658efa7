package pool

import "slices"

// Settled tells from counts alone that Plan has nothing to do and TargetCauses nothing
// to say. there is how many addresses each ENI of the snapshot has, whose Addresses
// are not looked at; below 0 it says that some are on their way back or lost. False
// means nothing: then Plan knows. Nearly every tick of an agent ends here, and it
// costs a tenth.
func Settled(c Config, s Snapshot, there []int, target int) bool {
	// Each of these needs more than counts: what is full, which addresses are partners, what an ENI that
	// is being made brings.
	if c.Mode == Burstable || len(s.Families) != 1 || len(s.Pending) > 0 {
		return false
	}
	slots, enis, first := 0, 0, c.FirstIndex(s.Limits)
	for i := range s.ENIs {
		e := &s.ENIs[i]
		switch {
		case e.Index < first:
		case e.Leaving || len(e.Coming) > 0 || there[i] <= 0:
			return false
		default:
			slots += there[i]
			enis++
		}
	}
	if slices.ContainsFunc(s.Subnets, func(n Subnet) bool { return n.Spared && thereIn(s, there, first, n.ID) > n.Keep }) {
		return false
	}
	most := c.Most(s.Limits, s.Families, s.forPods())
	ceiling := target
	if c.Mode == BestEffort {
		ceiling = min(target+c.MaxAboveWatermark, most)
	}
	if enis < c.enisBeforehand(s.Limits) {
		return false
	}
	return target >= 0 && target <= most && slots >= target && slots <= ceiling
}

func thereIn(s Snapshot, there []int, lowest int, subnet string) int {
	sum := 0
	for i := range s.ENIs {
		if e := &s.ENIs[i]; e.Subnet == subnet && e.Index >= lowest {
			sum += there[i]
		}
	}
	return sum
}
