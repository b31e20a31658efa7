package pool

import (
	"github.com/enipool/enipool/pkg/eni"
)

// grow plans how the target is reached, the cheapest way first: what is releasing is restored,
// slots that lack one family get it, ENIs with room get more, and only then new ENIs are made.
// Older ENIs come before newer ones.
func (l *ledger) grow() {
	for _, n := range l.nics {
		if !n.isSpared() {
			n.demanded += l.addSlots(n, l.short(), false)
		}
	}
	for _, n := range l.nics {
		if n.isSpared() {
			continue
		}
		if n.Busy && len(n.Coming) > 0 {
			l.arriving += l.awaitPartners(n)
		} else {
			l.evenOut(n)
		}
	}
	for _, n := range l.nics {
		if l.short() > 0 && !n.isSpared() {
			// A call costs the same for more addresses: best effort, whose ceiling is above its target,
			// asks for as many as it may keep.
			n.demanded += l.addSlots(n, l.ceiling-l.owned, true)
		}
	}
	l.createENIs(false)
	l.growForPods()
	l.makeBeforehand()
}

// addSlots plans up to k more slots on the ENI and returns how many it planned.
// Without calls it only restores what is releasing.
//
// Where addresses come in blocks the last one may bring some slots more.
func (l *ledger) addSlots(n *nic, k int, calls bool) int {
	calls = calls && !n.Busy && !n.NoMore.Is() && !n.NoLink && n.mayAsk()
	before := n.slots()
	for n.slots() < before+k && n.addSlot(calls) {
	}
	added := n.slots() - before
	n.needed = n.needed || added > 0 && l.owned < l.s.Needed
	l.owned += added
	return added
}

// evenOut plans the addresses that slots lack which have one family alone.
func (l *ledger) evenOut(n *nic) {
	for n.uneven() > 0 && l.owned < l.ceiling {
		added := l.addSlots(n, 1, true)
		if added == 0 {
			return
		}
		n.evened += added
	}
}

// keepTornBlocks does nic.keepTornBlocks and counts what it restores.
func (l *ledger) keepTornBlocks(n *nic) {
	before := n.slots()
	n.keepTornBlocks()
	l.owned += n.slots() - before
}

// awaitPartners counts on slots of a busy ENI that lack a family: a call brings it one, and
// the other is asked for when that has ended. Without this the plan would make
// another ENI for the same slots meanwhile.
func (l *ledger) awaitPartners(n *nic) (slots int) {
	before, k := n.slots(), min(n.unmatched(), l.ceiling-l.owned)
	for slots < k && !n.NoLink && n.mayAsk() && n.addSlot(true) {
		for i := range n.tallies {
			n.tallies[i].awaited += n.tallies[i].assign
			n.tallies[i].assign = 0
		}
		slots = n.slots() - before
	}
	l.owned += slots
	return slots
}

// mayAsk tells whether the ENI's subnet may be asked for more.
func (n *nic) mayAsk() bool { return n.field != nil && !n.field.Blocked.Is() }

// addSlot plans one more slot: an address of each family that has no more than the
// others, or a block of them. So the lagging family comes first, until all are even.
func (n *nic) addSlot(calls bool) bool {
	next := n.slots() + 1
	for i := range n.tallies {
		t := &n.tallies[i]
		if t.owned() < next && !t.canRestoreNext() && !(calls && t.nextCount(n.field.left[i]) > 0) {
			return false
		}
	}
	for i := range n.tallies {
		if t := &n.tallies[i]; t.owned() < next && !t.restoreNext() {
			t.planAssign(&n.field.left[i])
		}
	}
	return true
}

// createENIs plans new ENIs until the target is reached or no more fit, or, in subnets that are spared, until pods
// have what they need.
func (l *ledger) createENIs(spared bool) {
	for l.short() > 0 && l.noMoreENIs() == "" && !(spared && l.owned >= l.s.Needed) {
		f := l.chooseSubnet(spared)
		if f == nil {
			return
		}
		slots := l.newSize(f)
		if spared {
			slots = min(slots, l.slotsFitting(f, l.s.Needed-l.owned))
		}
		if slots <= 0 {
			return
		}
		l.addCreate(l.newENI(f, slots))
	}
}

func (l *ledger) addCreate(created Step) {
	l.created = append(l.created, created)
	l.owned += created.Count
	l.attached++
	l.carriers++
}

// newENI plans an ENI and takes what it begins with from the subnet.
func (l *ledger) newENI(f *field, slots int) Step {
	step := Step{Do: Create, Index: -1, Subnet: f.ID, Count: slots, Spare: l.owned >= l.s.Needed, Reason: l.whyCreate(f, slots)}
	for i, family := range l.s.Families {
		n := startCount(l.s.Limits, family, slots, f.left[i]-1)
		if family == eni.IPv4 {
			step.V4 = n
		} else {
			step.V6 = n
		}
		f.left[i] -= takenOfSubnet(l.s.Limits, family, n) + 1
	}
	return step
}
