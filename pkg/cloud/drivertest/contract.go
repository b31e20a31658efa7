// Package drivertest tells whether a driver.Driver keeps what the comments of that interface,
// and its own Traits, promise. Only tests may import it.
package drivertest

import (
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Subject is a driver under test, and what the suite may know and do besides calling it.
type Subject struct {
	Driver  driver.Driver // on an instance that has only its primary ENI
	Subnets []string      // IDs of those that ENIs may lie in; the first has room for all of them
	Lag     time.Duration // age of what reads show, at most

	// What an endpoint can't do is left out; sentences that need it are skipped.
	Other     string                              // the ID of a second instance, of the same type and zone, with only its primary ENI
	Groups    []string                            // security groups that an ENI may have, besides those of the primary ENI
	Tags      map[string]string                   // that the first subnet has and the second has not
	Page      int                                 // how many ENIs a page of an answer has
	Inject    func(method string, f Failure)      // makes the next request of the method fail so
	Changes   func() int                          // requests so far that change something
	Calls     func() map[string]int               // requests so far by action, as Traits name those; the caller may change the map
	Leave     func(subnet string, free int)       // leaves this many free addresses in the subnet
	Break     func(subnet string)                 // leaves no whole block of addresses in the subnet
	Terminate func(instance string)               // ends an instance
	Stop      func(instance string, stopped bool) // stops an instance, or starts it again
	Check     func() error                        // called at the end: what is wrong inside
	Lacks     []Capability                        // what the endpoint does not do as the cloud does
}

// Failure is what Subject.Inject does to a request.
type Failure uint8

// The failures. The first three refuse the request: nothing happens. Lost has its effect,
// and no answer; the effect of Late comes some milliseconds after the connection has
// broken. Hang answers nothing until the caller gives up.
const (
	Throttled Failure = iota
	Unavailable
	Forbidden
	Lost
	Late
	Hang
)

// Capability is what an endpoint may lack, by its name in the reason of a skip.
type Capability string

// The capabilities that Lacks may name. Emulators of clouds have few of them.
const (
	Tokens Capability = "tokens of creates" // Create with one token makes one ENI
	Reuse  Capability = "refusal of tokens with other parameters"
	Quotas Capability = "quotas" // more than Shape says is refused
	// Telling an ENI that is attached from one on its way: else both are Busy.
	Telling Capability = "a code for ENIs that are attached"
)

// need tells what of the subject a sentence lacks, "" if it can be tested.
type need func(s Subject, t driver.Traits) string

func needsCapability(c Capability) need {
	return func(s Subject, _ driver.Traits) string {
		if slices.Contains(s.Lacks, c) {
			return "the endpoint lacks " + string(c)
		}
		return ""
	}
}

// reasonUnless returns "" if something holds, else why a sentence can't be tested.
func reasonUnless(holds bool, why string) string {
	if holds {
		return ""
	}
	return why
}

// The hooks that sentences need.
func canFail(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Inject != nil, "the endpoint lacks a fault injection hook")
}

func canCount(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Changes != nil, "the endpoint lacks a count of changes")
}

func canCountActions(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Calls != nil, "the endpoint lacks a count of requests by their actions")
}

func canFill(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Leave != nil, "the endpoint lacks a hook to fill subnets")
}

func canBreak(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Break != nil, "the endpoint lacks a hook to break up the blocks of subnets")
}

func canEnd(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Terminate != nil && s.Other != "", "the endpoint lacks a second instance that can be ended")
}

func canStop(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Stop != nil && s.Other != "", "the endpoint lacks a second instance that can be stopped")
}

func hasOther(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Other != "", "the endpoint lacks a second instance")
}

func hasGroups(s Subject, _ driver.Traits) string {
	return reasonUnless(len(s.Groups) > 0, "the endpoint lacks further security groups")
}

func hasTags(s Subject, _ driver.Traits) string {
	return reasonUnless(len(s.Tags) > 0 && len(s.Subnets) > 1, "the endpoint lacks tags of subnets")
}

func hasPages(s Subject, _ driver.Traits) string {
	return reasonUnless(s.Page > 0, "the endpoint lacks pages")
}

func scansSeveral(_ Subject, t driver.Traits) string {
	return reasonUnless(t.PerScan > 1, "a scan names no instances")
}

// The traits that sentences are about.
func severalNICs(_ Subject, t driver.Traits) string {
	return reasonUnless(!t.OneNIC, "an instance has its primary ENI alone")
}

func bindsENIs(_ Subject, t driver.Traits) string {
	return reasonUnless(t.Binds, "the cloud has nothing to bind")
}

func bindsNothing(_ Subject, t driver.Traits) string {
	return reasonUnless(!t.Binds, "the cloud binds")
}

func fillsNew(_ Subject, t driver.Traits) string {
	return reasonUnless(t.CreateFills, "Create takes no counts of addresses")
}

func hasIndexes(_ Subject, t driver.Traits) string {
	return reasonUnless(!t.NoIndex, "the cloud has no device indexes")
}

func marksV6(_ Subject, t driver.Traits) string {
	return reasonUnless(t.MarksV6, "the cloud tells which IPv6 address is the primary one")
}

func assignTokens(_ Subject, t driver.Traits) string {
	return reasonUnless(t.AssignTokens, "Assign heeds no tokens")
}

func takesNames(_ Subject, t driver.Traits) string {
	return reasonUnless(t.Exact, "Assign takes no addresses by name")
}

func hasBlocks4(_ Subject, t driver.Traits) string {
	return reasonUnless(t.Bits4 > 0, "the cloud has no delegated prefixes")
}

// sentence is a sentence of the contract as a test.
type sentence struct {
	name  string
	needs []need
	holds func(*account)
}

// Contract runs the suite: every sentence as a subtest on a subject of its own, which
// open makes.
func Contract(t *testing.T, open func(t *testing.T) Subject) {
	ContractIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, open)
}

// ContractIn is Contract with each subtest inside of what in calls it in, such as
// synctest.Test.
func ContractIn(t *testing.T, in func(*testing.T, func(*testing.T)), open func(t *testing.T) Subject) {
	for _, s := range sentences() {
		t.Run(s.name, func(t *testing.T) {
			in(t, func(t *testing.T) { s.run(t, open(t)) })
		})
	}
}

func sentences() []sentence {
	return slices.Concat(reads, filters, pages, requests, creates, attaches, changes, assigns, exact, unassigns, reservations, failures)
}

func (s sentence) run(t *testing.T, subject Subject) {
	traits := subject.Driver.Traits()
	for _, lacks := range s.needs {
		if why := lacks(subject, traits); why != "" {
			t.Skip(why)
		}
	}
	s.holds(newAccount(t, subject))
	if subject.Check != nil {
		if err := subject.Check(); err != nil {
			t.Errorf("at the end the cloud itself is wrong:\n%v", err)
		}
	}
}
