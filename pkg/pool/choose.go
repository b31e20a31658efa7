package pool

import "math"

// choose returns the subnet for a new ENI, nil if none takes one. An ENI can't leave its
// subnet, and where it can't be filled it takes one of the few places for ENIs all the
// same: so one that can fill it comes first, whether all of it is wanted now or not
// (sources/cce-planned-cluster-mode.md, 3.1.3). Then the one with the most room, of
// equals the one with the first name. Those that are spared are chosen from apart.
func (l *ledger) choose(spared bool) *field {
	var best *field
	for _, f := range l.subnets {
		if f.New && f.Spared == spared && !f.Blocked.Is() && !f.NoNew.Is() && !l.s.NoNew.Is() && (best == nil || l.better(f, best)) {
			best = f
		}
	}
	return best
}

func (l *ledger) better(f, than *field) bool {
	fills := l.fills(f)
	switch {
	case fills != l.fills(than):
		return fills
	case f.room() != than.room():
		return f.room() > than.room()
	}
	return f.ID < than.ID
}

// fills tells whether the subnet has all that a new ENI may ever carry.
func (l *ledger) fills(f *field) bool { return l.fits(f, l.whole()) >= l.whole() }

// whole returns how many slots a new ENI may ever carry. The node's last one is cut by
// what the node may hold (see Fill).
func (l *ledger) whole() int { return min(perENI(l.s.Limits, l.s.Families), l.most-l.owned) }

// fits returns how many of so many slots a new ENI can begin with in the subnet. Its
// primary address takes one from the subnet.
func (l *ledger) fits(f *field, want int) int {
	slots := math.MaxInt
	for i, family := range l.s.Families {
		slots = min(slots, first(l.s.Limits, family, want, f.left[i]-1))
	}
	return slots
}

// footprint returns how many addresses a subnet needs that fills a new ENI.
func (l *ledger) footprint() int {
	most := 0
	for _, family := range l.s.Families {
		most = max(most, price(l.s.Limits, family, roundUp(l.whole(), unit(l.s.Limits, family))))
	}
	return most + 1
}

// newSize returns with how many slots a new ENI begins in the subnet, 0 for none at
// all. Its primary address takes one from the subnet.
func (l *ledger) newSize(f *field) int {
	want := l.fullSize()
	slots := l.fits(f, want)
	if l.c.Mode == Burstable && !l.c.Partial && slots < want {
		return 0
	}
	return slots
}

// fullSize returns for how many slots a new ENI is wanted. A burstable one is
// full; the last is cut by what the node may hold (see Fill).
func (l *ledger) fullSize() int {
	if l.c.Mode == Burstable {
		return l.whole()
	}
	return min(l.whole(), l.ceiling-l.owned)
}
