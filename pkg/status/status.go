// Package status is what the agent tells about itself: one value a tick, from
// which its metrics, its health and the pages for people are made.
package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/netconf"
)

// Status is the agent's view of its node after a tick. Its JSON names are stable.
type Status struct {
	Node    string    `json:"node"`
	Written time.Time `json:"written"`
	Due     time.Time `json:"due,omitzero"` // when the next one comes at the latest; see Late
	Mode    string    `json:"mode"`

	// Beat is how often the agent touches its file at least, 0 where it does not. Heard is
	// when it did that last: who reads the file finds it.
	Beat  time.Duration `json:"beat,omitempty"`
	Heard time.Time     `json:"-"`

	Strategy string `json:"strategy"`

	Demand int    `json:"demand"` // slots that pods and pending ADDs need now
	Need   int    `json:"need"`   // what the equation makes of it
	Target int    `json:"target"` // after damping
	Reason string `json:"reason"` // why the target is what it is
	Burst  bool   `json:"burst"`
	Most   int    `json:"most"` // slots the node can ever hold

	MaxPods       int    `json:"maxPods"`
	MaxPodsSource string `json:"maxPodsSource"`

	Addresses        Addresses `json:"addresses"`
	ENIs             int       `json:"enis"` // attached, the primary ENI among them
	ENILimit         int       `json:"eniLimit"`
	PerENI           int       `json:"perENI,omitempty"` // slots of an ENI
	PendingADDs      int       `json:"waiters"`          // ADDs that have no address yet
	StaleAllocations int       `json:"orphans"`          // addresses whose sandboxes provably do not exist any more, seen once

	InFlight     []string `json:"inFlight,omitempty"` // steps under way, as people read them
	Backoff      []string `json:"backoff,omitempty"`  // calls that are not repeated for a while after a failure, and why
	TargetCauses []string `json:"blockers,omitempty"` // why the target is out of reach; where there is no cause the first says what to do, too
	Findings

	FastPath *FastPath `json:"fastPath,omitempty"` // nil: the agent has none to keep

	Refused *Refused `json:"refused,omitempty"` // nil: the configuration file is in force

	Watched bool `json:"watched,omitempty"` // the cluster is asked for the node's pods
	Synced  bool `json:"synced,omitempty"`  // and has answered: until then no address is released
	Pods    int  `json:"pods,omitempty"`    // of them: that need an address

	Health health.Report `json:"health"` // what the cluster is told; without a reason nothing is
	FaultTimes

	// Causes are why pods don't get what they need, all at once: the first is the one that counts.
	Causes []Cause `json:"causes,omitempty"`

	Ready     bool   `json:"ready"`               // pods can get addresses and the agent does its work
	Problem   string `json:"problem,omitempty"`   // the most important thing that is wrong now
	Exhausted string `json:"exhausted,omitempty"` // subnets that have no more: their IDs

	LastFailure
}

// LastFailure is the last error of the agent's own work.
type LastFailure struct {
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
}

// Findings are what is found on the node and in the cloud that is not as it should be, each for people.
type Findings struct {
	Unlinked  []string `json:"unlinked,omitempty"`  // ENIs that have lost their links on the node
	Held      []string `json:"held,omitempty"`      // addresses that others hold, each with what holds it
	Shared    []string `json:"shared,omitempty"`    // addresses of pods that others claim too
	Blocked   []string `json:"blocked,omitempty"`   // chains of others that drop what pods send or get
	Misrouted []string `json:"misrouted,omitempty"` // routes and rules of others that pods' packets take instead of ours
	Prefixes  string   `json:"prefixes,omitempty"`  // delegated ones, where there are any: how many, and what keeps their free addresses
	Unused    []string `json:"unused,omitempty"`    // ENIs that get none for pods, with addresses that no pod uses
	LeftOut   []string `json:"leftOut,omitempty"`   // ENIs of which the cloud tells what can't be right
	Undone    []Undone `json:"undone,omitempty"`    // repairs that something undoes again and again, the most frequent first
	AskedBack int      `json:"askedBack,omitempty"` // slots that the operator asks this node to do without: pods of other nodes wait
	// PortConflicts are host ports of pods that others claim too, or that nobody can reach.
	PortConflicts []string `json:"portConflicts,omitempty"`
}

// FaultTimes are those of the fault that the cluster is told.
type FaultTimes struct {
	FaultSince time.Time `json:"faultSince,omitzero"` // since when it has the reason that is told
	FaultOver  time.Time `json:"faultOver,omitzero"`  // since when pods have addresses again, while the fault is still told
	// TargetNext is when the first of the target's causes is tried again while there is no cause, the zero time where that is not known.
	TargetNext time.Time `json:"targetNext,omitzero"`
}

// Cause is one answer to why the node does not have more addresses.
type Cause struct {
	Kind   string    `json:"kind"`             // one of few words, such as subnet-full
	Object string    `json:"object,omitempty"` // the ENI or subnet, "" for the whole node
	Slots  int       `json:"slots,omitempty"`  // that it keeps away, 0 if that is not known
	Next   time.Time `json:"next,omitzero"`    // when that is tried again, if that is known
	Reason string    `json:"reason,omitempty"` // of the Node's condition, once that shows it
	What   string    `json:"what"`             // for people
}

// Refused is a configuration that the agent did not take over: the one that was in force
// last stays.
type Refused struct {
	Error string    `json:"error"`
	Since time.Time `json:"since"`           // since when the file has not been right
	Start bool      `json:"start,omitempty"` // the file was so when the agent started

	// Kept is where the one in force is kept for the next start, "" where there is none: that
	// start would fail. NotKept is why. UntilReboot is why that place is one that a reboot empties.
	Kept        string `json:"kept,omitempty"`
	NotKept     string `json:"notKept,omitempty"`
	UntilReboot string `json:"untilReboot,omitempty"`
}

// String tells it without the times of day, in a line.
func (r Refused) String() string { return r.describeAt("") }

func (r Refused) describeAt(when string) string {
	text := "the changed configuration" + when + ": the one before stays in force"
	if r.Start {
		text = "the configuration" + when + ", when the agent was started: the one that was in force before is so again"
	}
	switch {
	case r.NotKept != "":
		text += " until the agent is started again, which would fail (" + r.NotKept + ")"
	case r.Kept == "":
		text += " until the agent is started again, which would fail"
	case r.UntilReboot != "":
		text += ", and the agent starts with it too (" + r.Kept + ") until the node is rebooted (" + r.UntilReboot + ")"
	default:
		text += ", and the agent starts with it too (" + r.Kept + ")"
	}
	return text + ": " + strings.Join(strings.Fields(r.Error), " ")
}

// Undone is something in the kernel that the agent put right many times in a row, because
// something else on the node undoes it.
type Undone struct {
	Change string    `json:"change"` // as the agent's log has it
	Times  int       `json:"times"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Who    string    `json:"who"`          // who it may be, and how to find out
	By     string    `json:"by,omitempty"` // who did it last, where the kernel has told

	// ShownFor is how long after the last time it is still told, as 2m0s: what runs each minute is no end of it.
	ShownFor string `json:"shownFor,omitempty"`
}

// String tells it without the times of day.
func (u Undone) String() string {
	who := "who it may be: " + u.Who
	if u.By != "" {
		who = "by " + u.By
	}
	text := fmt.Sprintf("%s, %s; %s", netconf.UndoneWords, u.countText(), who)
	if u.ShownFor != "" {
		text += "; told until it has stayed for " + u.ShownFor
	}
	return text
}

// countText tells what is undone and how often.
func (u Undone) countText() string {
	return fmt.Sprintf("%d times in %s so far: %s", u.Times, wholeSeconds(u.Last.Sub(u.First)), u.Change)
}

// FastPath tells whether packets of established connections pass the node by the
// short way, and how many did since the node started.
type FastPath struct {
	Off   []string `json:"off,omitempty"` // why they don't; nothing if they do
	Out   uint64   `json:"out"`           // from a pod out of the node
	In    uint64   `json:"in"`            // into a pod from outside
	Local uint64   `json:"local"`         // from pod to pod on the node
}

// String tells it in a line.
func (f FastPath) String() string {
	state := "on"
	if len(f.Off) > 0 {
		state = "off: " + strings.Join(f.Off, "; ")
	}
	return fmt.Sprintf("%s (packets so far: %d out, %d in, %d from pod to pod)", state, f.Out, f.In, f.Local)
}

// Addresses counts the addresses of the node state by state. They sum up to Attached.
type Addresses struct {
	Attached  int `json:"attached"`
	Free      int `json:"free"`
	Used      int `json:"used"`
	Cooling   int `json:"cooling"`
	Releasing int `json:"releasing"`
	Lost      int `json:"lost"`               // used, but the cloud took them away
	Held      int `json:"held"`               // no pod can have them: see HeldByOthers
	Unlinked  int `json:"unlinked,omitempty"` // of those: their ENIs have no link on the node
	Damaged   int `json:"damaged"`
	Reserved  int `json:"reserved,omitempty"` // kept for pods that do not have them now
	Claimed   int `json:"claimed,omitempty"`  // of Used: kept for their pods beyond their end
}

// HeldByOthers is how many others have: the kernel has something for them that is not enipool's.
func (a Addresses) HeldByOthers() int { return a.Held - a.Unlinked }

// An agent that sets no Due looks at its node at least once a usualWait. Grace is
// what a tick may take on top when it waits for locks and for the kernel.
const (
	usualWait = time.Minute
	grace     = 2 * time.Minute
)

// Late returns how long after Written an agent without a newer status does not
// run any more, or hangs.
func (s Status) Late() time.Duration {
	wait := s.Due.Sub(s.Written)
	if s.Due.IsZero() {
		wait = usualWait
	}
	return max(wait, 0) + grace
}
