package pool

import "slices"

// spared tells whether the ENI lies in a subnet whose addresses others wait for.
func (n *nic) spared() bool { return n.field != nil && n.field.Spared }

// yield plans what goes back for others in the subnets that are spared: rested slots beyond those that the
// node is to keep there, the newest ENI's first, as long as pods need none of them. What the target wants
// comes elsewhere, if it can: it does not wait for that, so that the others don't either.
func (l *ledger) yield() {
	spare := l.present() - l.s.Needed
	for _, f := range l.subnets {
		if !f.Spared {
			continue
		}
		surplus := l.in(f) - f.Keep
		for _, n := range slices.Backward(l.nics) {
			if n.field != f || n.Busy || n.Stays {
				continue
			}
			before, owned := n.present(), n.slots()
			for n.give(min(surplus-n.given, spare-n.given, n.present()-l.stays(n)), scarce(l.s.Families)) {
			}
			n.yielded, n.given = n.given, 0
			surplus, spare, l.owned = surplus-before+n.present(), spare-before+n.present(), l.owned-owned+n.slots()
		}
	}
}

// in returns how many slots there are in the subnet.
func (l *ledger) in(f *field) int {
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
		if n.spared() && short() > 0 {
			n.wanted += l.raise(n, short(), true)
		}
	}
	l.create(true)
}
