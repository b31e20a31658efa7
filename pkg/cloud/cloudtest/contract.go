// Package cloudtest tells whether a cloud.Cloud keeps what the comments of that interface
// promise. Only tests may import it.
//
// Contract needs as little of the cloud under test as possible: Transport makes the faults
// between a provider and any endpoint, and a sentence for which one ENI is enough uses the
// primary one if the instance can have no other. What an endpoint can't do, and what an instance
// is too small for, is skipped with the reason.
package cloudtest

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Subject is a cloud under test, and what the suite may know and do besides
// calling it.
type Subject struct {
	Cloud   cloud.Cloud   // of a fresh node that has its own ENI alone
	Subnets []string      // IDs of those in which its new ENIs may lie; the first has room for all of them. None: that of its own ENI
	Lag     time.Duration // age of what Interfaces and Subnets show, at most

	// Pods are the ranges that secondary addresses come from, where a cloud does not
	// take them from the subnet of the ENI's primary address; none: it does. Free of a
	// subnet is then what is left there.
	Pods []netip.Prefix

	// What an endpoint can't do is nil; sentences that need it are skipped.
	Other  cloud.Cloud                               // a second node of the same account
	Inject func(method string, f Failure)            // befalls the next call of the method
	Leave  func(subnet string, free int)             // so many addresses are left in it
	Break  func(subnet string)                       // leaves no whole block of addresses in it
	Detach func(id string)                           // takes an ENI off the node behind its back
	Move   func(id string)                           // does that and attaches it to the second node, behind its back too
	Use    func(t *testing.T, ready cloud.Interface) // fails the test unless a pod can use the addresses
	Check  func() error                              // called at the end: what is wrong inside

	// Chunk is more than 0 where Partial comes between two requests, as a Transport makes
	// it, and how many addresses one request carries at most then. 0: it halves any.
	Chunk int

	Lacks []Capability // what the endpoint does not do as a cloud does
	Must  []Capability // Blocks, DualStack: the suite fails without, for who asked for them would not see that they were not tried
}

// Failure is what Subject.Inject does to a call.
type Failure uint8

// The failures. The first three refuse the call: nothing happens. After a Lost one
// and a Late one the caller gets cloud.ErrUnknown; Late has the effect some
// milliseconds after that. Partial is half of the addresses and an error.
const (
	Throttled Failure = iota
	Unavailable
	Forbidden
	LostAfterCreate
	LostAfterAttach
	LostAfterEffect
	Late
	Partial
)

// String returns the failure's name.
func (f Failure) String() string {
	names := []string{"Throttled", "Unavailable", "Forbidden", "LostAfterCreate", "LostAfterAttach", "LostAfterEffect", "Late", "Partial"}
	if int(f) < len(names) {
		return names[f]
	}
	return strconv.Itoa(int(f))
}

// Capability is what an endpoint may lack, by its name in the reason of a skip.
type Capability string

// The capabilities. Emulators of clouds have few of them.
const (
	Tokens    Capability = "tokens"                      // calls with one token make one ENI
	Quotas    Capability = "quotas"                      // more than Limits says is refused
	Guard     Capability = "guard of unmanaged ENIs"     // deleting the node's own ENI is refused
	Attached  Capability = "refusal of what is attached" // attaching it once more
	OtherNode Capability = "a second node"
	Faults    Capability = "a fault injection hook"
	Scarcity  Capability = "a hook to fill subnets"
	Breaking  Capability = "a hook to break up the blocks of subnets"
	Blocks    Capability = "addresses in blocks" // Limits tell
	Detaching Capability = "a hook to detach ENIs"
	Moving    Capability = "a hook to move ENIs to the second node"
	Usage     Capability = "a way to use addresses"

	DualStack Capability = "IPv6 addresses besides IPv4 ones"

	// Limits tell. A sentence that can use the node's own ENI needs neither.
	Secondary Capability = "an ENI besides the primary one"
	Pair      Capability = "two ENIs besides the primary one"
)

// lacks tells whether the subject has no such capability.
func (s Subject) lacks(c Capability) bool {
	if slices.Contains(s.Lacks, c) {
		return true
	}
	// A hook that is nil says so itself; a test need not list it in Lacks.
	switch c {
	case OtherNode:
		return s.Other == nil
	case Faults:
		return s.Inject == nil
	case Scarcity:
		return s.Leave == nil
	case Breaking:
		return s.Break == nil
	case Detaching:
		return s.Detach == nil
	case Moving:
		return s.Move == nil || s.Other == nil
	case Usage:
		return s.Use == nil
	}
	return false
}

// sentence is a sentence of the contract as a test.
type sentence struct {
	name  string
	needs []Capability
	holds func(*node)
}

// Contract runs the suite: every sentence of cloud.Cloud's comments as a subtest
// on a subject of its own, which open makes.
func Contract(t *testing.T, open func(t *testing.T) Subject) {
	ContractIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, open)
}

// ContractIn is Contract with each subtest inside of what in calls it in, such as
// synctest.Test.
func ContractIn(t *testing.T, in func(*testing.T, func(*testing.T)), open func(t *testing.T) Subject) {
	for _, s := range slices.Concat(general, reads, known, creates, changes, inBlocks, kinds) {
		t.Run(s.name, func(t *testing.T) {
			in(t, func(t *testing.T) { s.run(t, open(t)) })
		})
	}
}

// run tests one sentence, or skips it with the reason.
func (s sentence) run(t *testing.T, subject Subject) {
	for _, c := range s.needs {
		if subject.lacks(c) {
			t.Skipf("the endpoint lacks %s", c)
		}
	}
	node := newNode(t, subject)
	for _, c := range subject.Must {
		if node.tooSmall(c) {
			t.Fatalf("there are no %s, which were asked for", c)
		}
	}
	// After Must: what the tester has asked for must not be skipped.
	for _, c := range s.needs {
		if node.tooSmall(c) {
			t.Skipf("the instance lacks %s", c)
		}
	}
	s.holds(node)
	if subject.Check != nil {
		if err := subject.Check(); err != nil {
			t.Errorf("at the end the cloud itself is wrong:\n%v", err)
		}
	}
}
