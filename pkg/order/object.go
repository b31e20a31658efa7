package order

import (
	"errors"
	"net/netip"
	"time"
)

// ErrConflict is what a write returns that was made from an older copy than there is: it changed nothing, and is
// decided again from a newer one.
var ErrConflict = errors.New("the object was changed meanwhile")

// Object is a copy of the whole object: the View, by which both sides decide, and what only its store, people and
// a handover need.
type Object struct {
	Version    string // of the copy, for a write that is made from it; "": there is no object
	UID        string
	Generation int64 // it grows with every change of the spec
	PutBack    int   // how often the store was put back to what it had before, since this process reads it
	View
	Asks
	Tells
}

// Asks is what of the spec no decision about addresses goes by.
type Asks struct {
	WaitingSince time.Time      // when Waiting rose from 0, zero at 0
	IdleSlots    int            // slots that the node could do without but for one, as they were up to some minutes ago
	IdleIn       map[string]int // by subnet, where the node has addresses of several: how many of those lie there
	SeenReclaim  int            // the Reclaim that the rest of the spec is an answer to
	Handover     *Handover      // nil: no agent has called the cloud for the node. One that has says so, if it hands over nothing else
}

// Handover is what the cloud may have heard of from an agent that leaves its calls to the operator.
type Handover struct {
	Tokens            []string // of ENIs that may be being made
	Release           []netip.Prefix
	ReleaseInterfaces []string
}

// Tells is what of the status no decision about addresses goes by.
type Tells struct {
	Observed  int64    // the Generation that the operator has taken in; negative: of a spec that was put back, see IsAsked
	Reclaim   int      // idle slots that the node is asked to do without: it rises with each of them, and is 0 when others need none any more
	ReclaimIn []string // the subnets in any of which those lie that it is asked for last, none: in whichever
	Causes    []Cause
	Tokens    []string // of ENIs that the operator may be making for a node that leaves it
}

// Cause is why a node can't have more, as the operator tells it.
type Cause struct {
	Reason  Reason
	Message string
	Until   time.Time // when it is tried again, zero for at any time
}

// Answered tells whether the operator has taken in what the spec says.
func (o Object) Answered() bool { return o.Observed >= o.Generation }

// IsAsked tells whether the operator waits for a word of the agent: to it the spec is one of before, which a store that was put back has
// brought back. Whichever the agent writes next is that word, unless the operator has found what was put back later still: it asks again then.
func (o Object) IsAsked() bool { return o.Observed < 0 && o.Generation <= -o.Observed }

// Repeat returns the spec that says once more what it says, with another number that the status is as much behind, or not.
func Repeat(v View) Spec {
	next := v.Spec
	if next.SeenRevision = 1 - min(next.seen(), 1); IsBehind(v) {
		next.SeenRevision = min(v.Spec.SeenRevision+1, MostSeen)
	}
	return next
}
