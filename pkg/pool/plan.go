package pool

import (
	"cmp"
	"slices"
)

// Plan returns what to do so that the node has target slots, in the order in which
// to do it. It is empty when there is nothing to do, and stays so when what it said
// has been done. How long a target stands before anything is released is decided by package
// scale and not here.
//
// A slot counts where both families are on one ENI: what is free, used or cooling,
// being assigned, and what ENIs being made begin with. Releasing and lost addresses do not
// count.
//
// Where addresses come in blocks they are asked for and released in whole ones, so
// that there may be some slots too many, less than a block. See block.go.
//
// ENIs with an index below FirstIndex and those that are leaving are not looked at,
// and no new call is planned about one that is busy.
func Plan(c Config, s Snapshot, target int) []Step {
	if len(s.Families) == 0 {
		return nil
	}
	l := newLedger(c, s, target)
	l.releaseForOthers()
	l.grow()
	if c.Mode == Burstable {
		l.returnENIs()
		l.fillENIs()
	} else {
		l.shrink()
	}
	return l.steps()
}

// steps writes the plan down: in the order of the actions, growing from the oldest
// ENI on, shrinking from the newest.
func (l *ledger) steps() []Step {
	var restore, assign, release, remove []Step
	for _, n := range l.nics {
		if addrs := n.addrsToRestore(); len(addrs) > 0 {
			restore = append(restore, Step{Do: Restore, ENI: n.ID, Index: n.Index, Subnet: n.Subnet, Addrs: addrs, Reason: l.whyRestore(n)})
		}
		assign = append(assign, l.assignSteps(n)...)
	}
	// An ENI that is deleted has its addresses in that step: releases of them by one of their own would
	// keep the ENI until the next tick, and cost a call more.
	for _, n := range slices.Backward(l.nics) {
		step := Step{Do: Release, ENI: n.ID, Index: n.Index, Subnet: n.Subnet, Addrs: n.addrsToRelease()}
		switch {
		case n.deleted:
			step.Do, step.Reason = Delete, l.whyDelete(n)
			remove = append(remove, step)
		case len(step.Addrs) > 0:
			step.Reason = l.whyRelease(n)
			release = append(release, step)
		}
	}
	return slices.Concat(restore, assign, l.created, release, remove)
}

// assignSteps returns the steps by which the ENI gets more, the family first that
// lacks most.
func (l *ledger) assignSteps(n *nic) []Step {
	tallies := slices.Clone(n.tallies)
	slices.SortStableFunc(tallies, func(a, b tally) int { return cmp.Compare(b.assign, a.assign) })
	var steps []Step
	for _, t := range tallies {
		if t.assign > 0 {
			steps = append(steps, Step{Do: Assign, ENI: n.ID, Index: n.Index, Subnet: n.Subnet, Family: t.family, Count: t.assign, Spare: !n.needed,
				Reason: l.whyAssign(n, t)})
		}
	}
	return steps
}
