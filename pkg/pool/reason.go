package pool

import (
	"fmt"
	"strings"
)

// demandWords says what is needed and what there is. All reasons of steps that follow from demand
// begin with it.
func (l *ledger) demandWords() string {
	var b strings.Builder
	fmt.Fprintf(&b, "demand needs %d slots", l.asked)
	if l.asked > l.most {
		fmt.Fprintf(&b, " and the node holds %d at most", l.most)
	}
	if l.ceiling > l.target {
		fmt.Fprintf(&b, " and may keep %d", l.ceiling)
	}
	fmt.Fprintf(&b, ", %d there", l.there)
	if l.arriving > 0 {
		fmt.Fprintf(&b, ", %d on their way", l.arriving)
	}
	return b.String()
}

func (l *ledger) whyRestore(n *nic) string {
	switch {
	case n.demanded > 0:
		return fmt.Sprintf("%s, %d to come on %s, whose addresses have not gone back yet", l.demandWords(), n.demanded, n.ID)
	case n.evened > 0:
		return l.whyEven(n)
	case n.mended > 0:
		return fmt.Sprintf("%s: %d addresses can't go, because others of their blocks stay", n.ID, n.mended)
	}
	return l.whyFill(n)
}

func (l *ledger) whyAssign(n *nic, t tally) string {
	switch {
	case n.demanded > 0:
		why := fmt.Sprintf("%s, %d to come on %s", l.demandWords(), n.demanded, n.ID)
		if t.assign != n.demanded {
			why += fmt.Sprintf(" by %d %s addresses", t.assign, t.family)
		}
		return why
	case n.evened > 0:
		return l.whyEven(n)
	}
	return l.whyFill(n)
}

// countWords says how many addresses of each family the ENI had when the plan began.
func (n *nic) countWords() string {
	parts := make([]string, len(n.tallies))
	for i, t := range n.tallies {
		parts[i] = fmt.Sprintf("%d %s", t.owned()-t.restore-t.assign+t.release, t.family)
	}
	return strings.Join(parts, " and ") + " addresses"
}

func (l *ledger) whyEven(n *nic) string {
	return fmt.Sprintf("%s has %s: a pod needs one of each, %d slots become whole", n.ID, n.countWords(), n.evened)
}

func (l *ledger) whyFill(n *nic) string {
	return fmt.Sprintf("%s has %d slots and mode burstable keeps it full: %d to come", n.ID, n.slots()-n.filled-n.evened-n.demanded, n.filled)
}

func (l *ledger) whyCreate(f *field, slots int) string {
	why := fmt.Sprintf("%s, %d to come on a new ENI in %s, which has %d addresses left", l.demandWords(), slots, f.ID, f.room())
	if !l.fillsENI(f) {
		why += fmt.Sprintf(": no subnet that takes ENIs now has the %d that fill one", l.addressesToFill())
	}
	return why
}

func (l *ledger) whyRelease(n *nic) string {
	if n.yielded > 0 {
		return fmt.Sprintf("%s has no addresses left and the node can have more elsewhere: %d free ones go back from %s for others, %d slots stay there",
			n.Subnet, n.yielded+n.slotsReleased, n.ID, n.present())
	}
	if n.slotsReleased == 0 {
		return fmt.Sprintf("%s has %s, and no pod will need those without a partner", n.ID, n.countWords())
	}
	return fmt.Sprintf("%s: %d free ones go back from %s", l.demandWords(), n.slotsReleased, n.ID)
}

func (l *ledger) whyDelete(n *nic) string {
	if n.slotsReleased == 0 {
		return fmt.Sprintf("%s: %s has no slot and is not needed", l.demandWords(), n.ID)
	}
	return fmt.Sprintf("%s: all %d slots of %s are idle and not needed", l.demandWords(), n.slotsReleased, n.ID)
}
