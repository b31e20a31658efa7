package topology

import (
	"fmt"
	"time"
)

// A call that moves an address in one takes it from whichever ENI has it by then. If its answer is lost, or if who sent it leads no more, it may
// take effect minutes later. So the claim says first to which ENI such a call goes, and as long as one may take effect the address serves nobody
// anywhere else: late or not, it moves the address from there to there.

// movesInOne tells whether one call can bring the address from a node to that of its pod. The claim has to know the ENI that has it.
func (f Facts) movesInOne(c Claim) bool {
	return f.OneCall && c.Phase == OnItsWay && f.Target != "" && f.At.Known && f.At.Node != "" && f.At.ENI != "" && f.At.ENI == c.ENI && f.At.Node != c.To
}

// isBarred tells whether a late call might take the address from where it would go next.
func (f Facts) isBarred(c Claim) bool { return f.Late && (f.Target == "" || f.Target != c.ToENI) }

// MayUnassign tells whether an address that its node has ended with may be unassigned there whatever comes next: not if it leaves in one call, and
// not while it would be free for a late call to take.
func (f Facts) MayUnassign(c Claim) bool { return !f.movesInOne(c) && !f.isBarred(c) }

// chooseToENI returns what the claim says next of calls in one. It is written before the first one, and stays until none can take effect.
func (c Claim) chooseToENI(f Facts, now time.Time) string {
	switch {
	case f.Late || !f.At.Known:
		return c.ToENI
	case f.movesInOne(c) && f.At.Accepted && f.At.isFree(now):
		return f.Target
	}
	return ""
}

// waitForLate is why a claim waits for the end of a call in one.
func waitForLate(c Claim) Wait {
	return Wait{Cause: Moving, Message: fmt.Sprintf("a call of before may still move %s to %s: it goes nowhere else for some minutes", c.Addr, c.ToENI)}
}
