package topology

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// MoveGrace is how long the node that has an address may take to end with it. Then it is unassigned without the agent's word: the
	// VPC delivers nothing to what is left of the old pod there.
	MoveGrace = 10 * time.Second

	// ConflictRetry is how long an address counts as one of others after the cloud has said so.
	ConflictRetry = 5 * time.Minute
)

// Presence is whether something is there.
type Presence uint8

// The presences. What one list lacks may have been missed: it is Unknown until another one lacks it too.
const (
	Unknown Presence = iota
	Present
	Absent
)

// Facts are what is known of a claim besides what it says itself.
type Facts struct {
	Deleted     bool     // the object is being deleted, by people or by an earlier step
	Pod         PodFacts // of the claim's name
	StatefulSet Presence // of one of the name that the claim has. One that was made again is the same: pods outlive a deletion that spares them
	Surplus     bool     // another claim keeps an address of the same topology and family for the name, and goes before this one
	At          Attachment

	Target  string    // the ENI of the pod's node that is to carry the address, "" if none can
	OneCall bool      // the cloud can move it to Target in one call: in one subnet, and no range reserved there has it
	Late    bool      // a call that moves it to the claim's ToENI may take effect yet
	Refused time.Time // when the cloud has last refused it
	Refusal string    // why, "" if an unmanaged ENI has it
}

// PodFacts are what is known of a pod. What it was before it was made again is not of it.
type PodFacts struct {
	Presence  Presence
	UID, Node string // no node: it is not scheduled yet
	Topology  string // that it belongs to
	Ended     bool   // it has succeeded or failed, and runs no more
	Shows     bool   // its kubelet shows the claim's address as its own
}

// Attachment is where the cloud has an address, by a describe of this leader.
type Attachment struct {
	Known     bool   // and no call is open that may change it
	ENI, Node string // none: no ENI of ours has it
	Accepted  bool   // that it leaves its node: no pod there gets it any more
	Released  bool   // the node's agent has ended with it, and that is accepted: it goes back whatever happens
	NodeGone  bool   // deleted, not ready, or out of service: its agent says nothing
	Asked     time.Time
}

// Action is what is to be done for a claim.
type Action uint8

// The actions.
const (
	Nothing  Action = iota
	Withdraw        // the node that has the address is told that no pod there gets it; its agent releases it
	Unassign        // from the ENI that has it
	Assign          // to Target
	Reassign        // both in one call, once that it leaves its node is accepted and the claim says where it goes
	Delete          // the object: it stays until Forget
	Forget          // the object: its finalizer goes, and it with it
)

// Step is what becomes of a claim. A status that differs is written first; the action is decided from one that is written, so whoever
// leads next goes on with it.
type Step struct {
	Claim  Claim
	Action Action
	Wait   Wait // what keeps the address from its pod, or the claim from its end
}

// Next decides the next step of a claim. It goes by what is there, not by what was done: it can be asked again at any time, by
// another leader too. As long as nobody knows which pods there are nothing happens.
func Next(claim Claim, facts Facts, now time.Time) Step {
	next := claim
	switch {
	case facts.Pod.Presence == Unknown:
		return Step{Claim: claim, Wait: Wait{Cause: InUse, Message: fmt.Sprintf("whether pod %s/%s is there is not known yet", claim.Namespace, claim.Pod)}}
	case facts.Deleted || facts.Surplus || claim.Phase == Releasing:
		next.Status = statusAtEnd(claim, facts)
	case !facts.Pod.needs(claim):
		next.Status = statusWithoutPod(claim, facts, now)
	default:
		next.Status = statusWithPod(claim, facts, now)
	}
	if next.ToENI = next.chooseToENI(facts, now); next != claim {
		return Step{Claim: next}
	}
	step := Step{Claim: claim}
	step.Action, step.Wait = chooseAction(claim, facts, now)
	return step
}

// needs tells whether the pod is one that the claim is kept for, and runs or is to run.
func (p PodFacts) needs(c Claim) bool {
	return p.Presence == Present && !p.Ended && p.Topology == c.Topology
}

// statusWithoutPod is that of a claim whose pod is not there. Its time runs from the moment at which that was first seen.
func statusWithoutPod(c Claim, f Facts, now time.Time) Status {
	s := c.Status
	s.Phase, s.PodUID, s.To = Free, "", ""
	if s.FreeSince.IsZero() || s.FreeSince.After(now) { // a clock was ahead: else it would end as much later
		s.FreeSince = now
	}
	over := f.StatefulSet == Absent
	if c.Keep == Sticky {
		over = !now.Before(s.FreeSince.Add(c.TTL))
	}
	if over {
		s.Phase = Releasing
	}
	return s
}

// statusWithPod is that of a claim whose pod is there.
func statusWithPod(c Claim, f Facts, now time.Time) Status {
	s := c.Status
	s.PodUID, s.FreeSince = f.Pod.UID, time.Time{}
	there := f.At.Node != "" && f.At.Node == f.Pod.Node
	switch {
	case f.Pod.Node == "":
		s.Phase, s.To = Free, ""
	case f.At.Known && there && !f.At.Released && !(f.Late && f.At.ENI != c.ToENI):
		if s.Node != "" && s.Node != f.At.Node {
			s.Moves++
		}
		s.Phase, s.Node, s.ENI, s.To = Bound, f.At.Node, f.At.ENI, ""
	case !f.At.Known && c.Phase == Bound && c.Node == f.Pod.Node:
		// A leader that has not described yet takes nothing away.
	case f.At.ENI == "" && isContested(f, now):
		s.Phase, s.To = Contested, ""
	default:
		s.Phase, s.To = OnItsWay, f.Pod.Node
	}
	return s
}

// isContested tells whether the cloud has refused the address a moment ago: mostly an unmanaged ENI has it.
func isContested(f Facts, now time.Time) bool {
	return !f.Refused.IsZero() && now.Before(f.Refused.Add(ConflictRetry))
}

// statusAtEnd is that of a claim that ends. The pod that it was for keeps the address as long as it runs, and so does one that has taken it by itself:
// its kubelet shows that. Any other one gets another address: the next of the name, one on another node, and one on a node that has ended with it.
func statusAtEnd(c Claim, f Facts) Status {
	s := c.Status
	s.Phase, s.PodUID, s.To = Releasing, "", ""
	mayHave := !f.At.Known || f.At.Node == f.Pod.Node && !f.At.Released
	if f.Pod.needs(c) && f.Pod.Node != "" && mayHave && (f.Pod.UID == c.PodUID || f.Pod.Shows) {
		s.PodUID = f.Pod.UID
	}
	return s
}

// chooseAction says what is to be done for a claim as it is written.
func chooseAction(claim Claim, facts Facts, now time.Time) (Action, Wait) {
	open := Wait{Cause: Moving, Message: fmt.Sprintf("the cloud has yet to say which ENI has %s", claim.Addr)}
	switch claim.Phase {
	case Contested:
		w := Wait{Cause: Conflict, Until: facts.Refused.Add(ConflictRetry), Message: fmt.Sprintf("an unmanaged ENI has %s: free it there, or delete the claim", claim.Addr)}
		if facts.Refusal != "" {
			w.Message = fmt.Sprintf("the cloud does not give %s to %s: %s; mend that, or delete the claim", claim.Addr, facts.Pod.Node, facts.Refusal)
		}
		return Nothing, w
	case Releasing:
		switch {
		case !facts.Deleted:
			return Delete, Wait{}
		case claim.PodUID != "":
			return Nothing, Wait{Cause: InUse, Message: fmt.Sprintf("pod %s/%s has %s until it ends", claim.Namespace, claim.Pod, claim.Addr)}
		case !facts.At.Known:
			return Nothing, open
		case facts.isBarred(claim):
			return Nothing, waitForLate(claim)
		case facts.At.ENI == "":
			return Forget, Wait{}
		}
		return detach(claim, facts, now)
	case OnItsWay:
		switch {
		case !facts.At.Known:
			return Nothing, open
		case facts.At.ENI != "":
			return detach(claim, facts, now)
		case facts.isBarred(claim):
			return Nothing, waitForLate(claim)
		case facts.Target == "":
			return Nothing, Wait{Cause: NoSlot, Message: fmt.Sprintf("no ENI of %s can carry %s", claim.To, claim.Addr)}
		}
		return Assign, Wait{}
	}
	return Nothing, Wait{}
}

// detach takes the address from the ENI that has it, once nobody there uses it.
func detach(c Claim, f Facts, now time.Time) (Action, Wait) {
	wait := Wait{Cause: Moving, Message: fmt.Sprintf("moving %s from %s", c.Addr, cmp.Or(f.At.Node, f.At.ENI))}
	switch untold := f.mayBeTaken(); {
	case f.At.isFree(now) && !untold:
	case untold && f.At.Accepted: // the agent's time begins when the pod has ended
		return Nothing, Wait{Cause: InUse, Message: fmt.Sprintf("the agent of %s has yet to say that pod %s/%s there does not have %s", f.At.Node, c.Namespace, c.Pod, c.Addr)}
	case untold || f.At.Asked.IsZero():
		return Withdraw, wait
	default:
		wait.Until = f.At.Asked.Add(MoveGrace)
		return Nothing, wait
	}
	switch {
	case f.isBarred(c):
		return Nothing, waitForLate(c)
	case f.movesInOne(c):
		return Reassign, wait
	}
	return Unassign, wait
}

// mayBeTaken tells whether a pod of the claim's name runs where the address is, and may have been given it there for its name: until its node's agent says that no
// sandbox has it nobody knows. It is one of a claim that ends, or of another topology, whose plugin was not told that.
func (f Facts) mayBeTaken() bool {
	return f.Pod.Presence == Present && !f.Pod.Ended && f.Pod.Node != "" && f.Pod.Node == f.At.Node && !f.At.Released
}

// isFree tells whether nobody where the address is uses it, or may go on using it.
func (a Attachment) isFree(now time.Time) bool {
	return a.Released || a.NodeGone || !a.Asked.IsZero() && !now.Before(a.Asked.Add(MoveGrace))
}
