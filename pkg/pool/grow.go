package pool

// grow plans how the goal is reached, the cheapest way first: what is on its way
// back is taken back, slots that lack one family get it, ENIs with room get more,
// and only then new ENIs are made. Older ENIs come before newer ones.
func (l *ledger) grow() {
	for _, n := range l.nics {
		n.wanted += l.raise(n, l.short(), false)
	}
	for _, n := range l.nics {
		if n.Busy && len(n.Coming) > 0 {
			l.arriving += l.await(n)
		} else {
			n.evened += l.raise(n, min(n.uneven(), l.ceiling-l.owned), true)
		}
	}
	for _, n := range l.nics {
		if l.short() > 0 {
			// Best effort asks for more than is missing where it has to ask anyway.
			n.wanted += l.raise(n, l.ceiling-l.owned, true)
		}
	}
	l.create()
}

// raise plans up to k more slots on the ENI and returns how many it planned.
// Without calls it only takes back what is on its way back.
func (l *ledger) raise(n *nic, k int, calls bool) int {
	calls = calls && !n.Busy && n.takes()
	for i := range k {
		if !n.addSlot(calls) {
			return i
		}
		l.owned++
	}
	return max(k, 0)
}

// await counts on slots of a busy ENI that lack a family: a call brings it one, and
// the other is asked for when that has ended. Without this the plan would make
// another ENI for the same slots meanwhile.
func (l *ledger) await(n *nic) (slots int) {
	for range min(n.uneven(), l.ceiling-l.owned) {
		if !n.takes() || !n.addSlot(true) {
			return slots
		}
		for i := range n.tallies {
			n.tallies[i].awaited += n.tallies[i].assign
			n.tallies[i].assign = 0
		}
		l.owned++
		slots++
	}
	return slots
}

// takes tells whether the ENI's subnet may be asked for more.
func (n *nic) takes() bool { return n.field != nil && !n.field.Blocked }

// addSlot plans one more slot: an address of each family that has no more than the
// others. So the lagging family comes first, until all are even.
func (n *nic) addSlot(calls bool) bool {
	next := n.slots() + 1
	for i, t := range n.tallies {
		fits := calls && t.room() > 0 && n.field.left[i] > 0
		if t.owned() < next && t.restore == t.going && !fits {
			return false
		}
	}
	for i := range n.tallies {
		t := &n.tallies[i]
		switch {
		case t.owned() >= next:
		case t.restore < t.going:
			t.restore++
		default:
			t.assign++
			n.field.left[i]--
		}
	}
	return true
}

// create plans new ENIs until the goal is reached or no more fit.
func (l *ledger) create() {
	for l.short() > 0 && l.attached < l.s.Limits.ENIs {
		f := l.roomiest()
		if f == nil {
			return
		}
		slots := l.newSize(f)
		if slots <= 0 {
			return
		}
		l.created = append(l.created, Step{Do: Create, Index: -1, Subnet: f.ID, Count: slots, Reason: l.whyCreate(f, slots)})
		for i := range f.left {
			f.left[i] -= slots + 1
		}
		l.owned += slots
		l.attached++
	}
}

// roomiest returns the subnet for a new ENI: the one with the most room, of equals
// the one with the first name.
func (l *ledger) roomiest() *field {
	var best *field
	for _, f := range l.subnets {
		if !f.New || f.Blocked {
			continue
		}
		if best == nil || f.room() > best.room() || f.room() == best.room() && f.ID < best.ID {
			best = f
		}
	}
	return best
}

// newSize returns with how many slots a new ENI begins in the subnet, 0 for none at
// all. Its primary address takes one from the subnet.
func (l *ledger) newSize(f *field) int {
	full, room := l.fullSize(), f.room()-1
	if l.c.Mode == Burstable && !l.c.Partial && room < full {
		return 0
	}
	return min(full, room)
}

// fullSize returns with how many slots a new ENI should begin. A burstable one is
// full; the last is cut by what the node may hold (see Fill).
func (l *ledger) fullSize() int {
	per := perENI(l.s.Limits, l.s.Families)
	if l.c.Mode == Burstable {
		return min(per, l.most-l.owned)
	}
	return min(per, l.ceiling-l.owned)
}
