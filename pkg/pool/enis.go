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
		l.V4 = min(l.V4, max(c.MaxIPsPerENI, 1+unit(l, eni.IPv4)))
		l.V6 = min(l.V6, max(c.MaxIPsPerENI, 1+unit(l, eni.IPv6)))
	}
	return l
}

// carriers returns how many ENIs for pods the node may have.
func (c Config) carriers(l eni.Limits) int {
	n := max(0, l.ENIs-c.FirstIndex(l))
	if c.MaxAllocateENI > 0 {
		n = min(n, c.MaxAllocateENI)
	}
	return n
}

// Full says why the node gets no ENI more, whatever its subnets have, "" if it may.
func (c Config) Full(s Snapshot) string { return open(c, s, 0).full() }

func (l *ledger) full() string {
	switch {
	case l.attached >= l.s.Limits.ENIs:
		return fmt.Sprintf("ENI limit reached: %d of %d, %d of them being made and %d not enipool's",
			l.attached, l.s.Limits.ENIs, len(l.s.Pending)+len(l.created), l.s.Foreign)
	case l.c.MaxAllocateENI > 0 && l.carriers >= l.c.MaxAllocateENI:
		return fmt.Sprintf("%d ENIs for pods, as many as maxAllocateENI lets the node have", l.carriers)
	}
	return ""
}

// prepare plans the ENIs that are to be there before pods need them, so that those wait
// for an address and not for an ENI. Each begins with a slot, on top of the target, and
// lies where it can be filled; a burstable one is full.
func (l *ledger) prepare() {
	for l.carriers < l.c.ahead(l.s.Limits) && l.owned < l.most && l.full() == "" {
		f := l.choose(false)
		if f == nil || !l.fills(f) {
			return
		}
		slots := l.fits(f, 1)
		if l.c.Mode == Burstable {
			slots = l.whole()
		}
		step := l.newENI(f, slots)
		step.Reason = fmt.Sprintf("a new ENI in %s is made beforehand, the %s of the %d of preAllocateENI", f.ID, ordinal(l.carriers+1), l.c.PreAllocateENI)
		l.add(step)
	}
}

func ordinal(n int) string {
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

// ahead returns how many ENIs for pods are to be there before pods need them.
func (c Config) ahead(l eni.Limits) int { return min(c.PreAllocateENI, c.carriers(l)) }

// beforehand returns how many slots those ENIs may have beyond the target: the first is what pods need anyway.
func (c Config) beforehand(l eni.Limits, families []eni.Family) int {
	return max(0, c.ahead(l)-1) * unit(l, scarce(families))
}

// prepared tells whether the ENI is one of the oldest, which stay with a slot at least.
func (l *ledger) prepared(n *nic) bool {
	for i := range min(l.c.PreAllocateENI, len(l.nics)) {
		if l.nics[i] == n {
			return true
		}
	}
	return false
}
