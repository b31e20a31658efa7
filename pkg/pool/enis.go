package pool

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
)

// Within returns what the node may have of its instance's limits: ENIs with at most
// MaxIPsPerENI addresses of a family, but a block of them at least. The limits of the
// result are its own.
func (c Config) Within(l eni.Limits) eni.Limits {
	if c.MaxIPsPerENI > 0 {
		l.V4 = min(l.V4, max(c.MaxIPsPerENI, 1+unitSize(l, eni.IPv4)))
		l.V6 = min(l.V6, max(c.MaxIPsPerENI, 1+unitSize(l, eni.IPv6)))
	}
	return l
}

// mostCarriers returns how many ENIs for pods the node may have.
func (c Config) mostCarriers(l eni.Limits) int {
	n := max(0, l.ENIs-c.FirstIndex(l))
	if c.MaxAllocateENI > 0 {
		n = min(n, c.MaxAllocateENI)
	}
	return n
}

// Full says why the node gets no ENI more, whatever its subnets have, "" if it may.
func (c Config) Full(s Snapshot) string { return newLedger(c, s, 0).noMoreENIs() }

func (l *ledger) noMoreENIs() string {
	switch {
	case l.attached >= l.s.Limits.ENIs:
		return fmt.Sprintf("ENI limit reached: %d of %d, %d of them being made and %d not enipool's",
			l.attached, l.s.Limits.ENIs, len(l.s.Pending)+len(l.created), l.s.Unmanaged)
	case l.attached+l.s.KeptENIs >= l.s.Limits.ENIs:
		return fmt.Sprintf("ENI limit reached: %d of %d, and %d are left for pods of topologies by topologyPlaces %d", l.attached, l.s.Limits.ENIs, l.s.KeptENIs, l.c.TopologyPlaces)
	case l.c.MaxAllocateENI > 0 && l.carriers >= l.c.MaxAllocateENI:
		return fmt.Sprintf("%d ENIs for pods, as many as maxAllocateENI lets the node have", l.carriers)
	}
	return ""
}

// LargerInstance is what helps where the instance carries no more.
const LargerInstance = "take a larger instance"

// MoreENIs says what lets the node have one more ENI, where Full says that it may not.
func (c Config) MoreENIs(s Snapshot) string { return newLedger(c, s, 0).moreENIs() }

func (l *ledger) moreENIs() string {
	switch {
	case l.attached >= l.s.Limits.ENIs && l.s.Unmanaged > 0:
		return LargerInstance + ", or detach ENIs that are not enipool's"
	case l.attached >= l.s.Limits.ENIs:
		return LargerInstance
	case l.attached+l.s.KeptENIs >= l.s.Limits.ENIs:
		return LargerInstance + ", or lower pool.topologyPlaces"
	}
	return "raise pool.maxAllocateENI"
}

// makeBeforehand plans the ENIs of preAllocateENI, which are there before pods need them, so that
// pods wait for an address and not for an ENI. Each begins with one slot beyond the target, in a
// subnet that can fill it; a burstable one is full.
func (l *ledger) makeBeforehand() {
	for l.carriers < l.c.enisBeforehand(l.s.Limits) && l.owned < l.most && l.noMoreENIs() == "" {
		f := l.chooseSubnet(false)
		if f == nil || !l.fillsENI(f) {
			return
		}
		slots := l.slotsFitting(f, 1)
		if l.c.Mode == Burstable {
			slots = l.mostPerENI()
		}
		step := l.newENI(f, slots)
		step.Reason = fmt.Sprintf("a new ENI in %s is made beforehand, the %s of the %d of preAllocateENI", f.ID, ordinalOf(l.carriers+1), l.c.PreAllocateENI)
		l.addCreate(step)
	}
}

func ordinalOf(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

// enisBeforehand returns how many ENIs for pods are to be there before pods need them.
func (c Config) enisBeforehand(l eni.Limits) int { return min(c.PreAllocateENI, c.mostCarriers(l)) }

// slotsBeforehand returns how many slots those ENIs may have beyond the target: the first is what pods need anyway.
func (c Config) slotsBeforehand(l eni.Limits, families []eni.Family) int {
	return max(0, c.enisBeforehand(l)-1) * unitSize(l, scarceFamily(families))
}

// isBeforehand tells whether the ENI is one of the oldest, which stay with a slot at least.
func (l *ledger) isBeforehand(n *nic) bool {
	for i := range min(l.c.PreAllocateENI, len(l.nics)) {
		if l.nics[i] == n {
			return true
		}
	}
	return false
}
