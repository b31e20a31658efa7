package pool

import "slices"

// isSpared tells whether the ENI lies in a subnet whose addresses others wait for.
func (n *nic) isSpared() bool { return n.field != nil && n.field.Spared }

// releaseForOthers plans what is released for other nodes in the subnets that are spared: free slots beyond those
// that the node is to keep there, the newest ENI's first, as long as pods need none of them. The target is reached
// by other subnets, if they can: the release does not wait for that, because other nodes wait for it.
func (l *ledger) releaseForOthers() {
	spare := l.present() - l.s.Needed
	for _, f := range l.subnets {
		if !f.Spared {
			continue
		}
		surplus := l.presentIn(f) - f.Keep
		for _, n := range slices.Backward(l.nics) {
			if n.field != f || n.Busy || n.Stays {
				continue
			}
			before, owned := n.present(), n.slots()
			for n.releaseSlots(min(surplus-n.slotsReleased, spare-n.slotsReleased, n.present()-l.slotsKept(n)), scarceFamily(l.s.Families)) {
			}
			n.yielded, n.slotsReleased = n.slotsReleased, 0
			surplus, spare, l.owned = surplus-before+n.present(), spare-before+n.present(), l.owned-owned+n.slots()
		}
	}
}

// presentIn returns how many slots there are in the subnet.
func (l *ledger) presentIn(f *field) int {
	sum := 0
	for _, n := range l.nics {
		if n.field == f {
			sum += n.present()
		}
	}
	return sum
}

// growForPods plans what pods need and what no other subnet gives, in those that are spared.
func (l *ledger) growForPods() {
	short := func() int { return min(l.short(), l.s.Needed-l.owned) }
	for _, n := range l.nics {
		if n.isSpared() && short() > 0 {
			n.demanded += l.addSlots(n, short(), true)
		}
	}
	l.createENIs(true)
}
