package pool

import "math"

// chooseSubnet returns the subnet for a new ENI, nil if none takes one: of those that are spared,
// or of the others. An ENI can't leave its subnet, and counts towards the instance's limit of
// ENIs even if it can't be filled there: so a subnet that can fill it comes first, whether all
// of it is needed now or not (sources/cce-planned-cluster-mode.md, 3.1.3). Then comes the one
// with the most addresses left, of equals the one with the first ID.
func (l *ledger) chooseSubnet(spared bool) *field {
	var best *field
	for _, f := range l.subnets {
		if f.New && f.Spared == spared && !f.Blocked.Is() && !f.NoNew.Is() && !l.s.NoNew.Is() && (best == nil || l.better(f, best)) {
			best = f
		}
	}
	return best
}

// better tells whether a new ENI lies better in f than in the other: see chooseSubnet.
func (l *ledger) better(f, than *field) bool {
	fills := l.fillsENI(f)
	switch {
	case fills != l.fillsENI(than):
		return fills
	case f.room() != than.room():
		return f.room() > than.room()
	}
	return f.ID < than.ID
}

// fillsENI tells whether the subnet has all that a new ENI may ever carry.
func (l *ledger) fillsENI(f *field) bool { return l.slotsFitting(f, l.mostPerENI()) >= l.mostPerENI() }

// mostPerENI returns how many slots a new ENI may ever carry. The node's last one is cut by
// what the node may hold (see Fill).
func (l *ledger) mostPerENI() int { return min(perENI(l.s.Limits, l.s.Families), l.most-l.owned) }

// slotsFitting returns how many of the slots wanted a new ENI can begin with in the subnet. Its
// primary address takes one from the subnet.
func (l *ledger) slotsFitting(f *field, want int) int {
	slots := math.MaxInt
	for i, family := range l.s.Families {
		slots = min(slots, startCount(l.s.Limits, family, want, f.left[i]-1))
	}
	return slots
}

// addressesToFill returns how many addresses a subnet needs that fills a new ENI.
func (l *ledger) addressesToFill() int {
	most := 0
	for _, family := range l.s.Families {
		most = max(most, takenOfSubnet(l.s.Limits, family, roundUp(l.mostPerENI(), unitSize(l.s.Limits, family))))
	}
	return most + 1
}

// newSize returns with how many slots a new ENI begins in the subnet, 0 for none at
// all. Its primary address takes one from the subnet.
func (l *ledger) newSize(f *field) int {
	want := l.fullSize()
	slots := l.slotsFitting(f, want)
	if l.c.Mode == Burstable && !l.c.Partial && slots < want {
		return 0
	}
	return slots
}

// fullSize returns for how many slots a new ENI is wanted. A burstable one is
// full; the last is cut by what the node may hold (see Fill).
func (l *ledger) fullSize() int {
	if l.c.Mode == Burstable {
		return l.mostPerENI()
	}
	return min(l.mostPerENI(), l.ceiling-l.owned)
}
