package driver

import (
	"context"
	"strings"
	"time"
)

// Parts of a method whose requests a cloud may count apart from the method's others, for
// Traits.Requests. Without an entry of its own a part has the method's.
const (
	SubnetsOne      = "Subnets.One"  // by the ID of one
	SubnetsBoth     = "Subnets.Both" // by IDs and by tags
	InterfacesMade  = "Interfaces.Made"
	InterfacesByID  = "Interfaces.IDs"
	InterfacesLoose = "Interfaces.Loose"
	AssignPrimary   = "Assign.Primary"
	UnassignPrimary = "Unassign.Primary"
)

// Part names what a Subnets with the filter is in Traits.Requests.
func (f SubnetFilter) Part() string {
	switch {
	case len(f.IDs) > 0 && len(f.Tags) > 0:
		return SubnetsBoth
	case len(f.IDs) == 1:
		return SubnetsOne
	}
	return "Subnets"
}

// Part names what an Interfaces with the filter is in Traits.Requests.
func (f Filter) Part() string {
	switch {
	case f.Attached.Instance != "":
		return "Interfaces"
	case f.Made != "":
		return InterfacesMade
	case f.Loose != "":
		return InterfacesLoose
	}
	return InterfacesByID
}

// Part names what the Assign is in Traits.Requests.
func (a Assign) Part() string {
	if a.On.Primary {
		return AssignPrimary
	}
	return "Assign"
}

// Part names what the Unassign is in Traits.Requests.
func (u Unassign) Part() string {
	if u.On.Primary {
		return UnassignPrimary
	}
	return "Unassign"
}

// ActionsOf returns the actions that a method, or a part of one, is made of.
func (t Traits) ActionsOf(part string) []string {
	if list, own := t.Requests[part]; own {
		return list
	}
	method, _, _ := strings.Cut(part, ".")
	return t.Requests[method]
}

// Looking returns the actions that change nothing.
func (t Traits) Looking() map[string]bool {
	looking := map[string]bool{}
	for _, method := range []string{"Shape", "Shapes", "Alive", "Subnets", SubnetsOne, SubnetsBoth, "Interfaces", InterfacesMade, InterfacesByID, InterfacesLoose, "Page", "Reservations"} {
		for _, action := range t.ActionsOf(method) {
			looking[action] = true
		}
	}
	return looking
}

// Retries are how a driver makes a request again that changes nothing and that the cloud
// refused for its rate, after it has asked Again. The zero Retries are none.
type Retries struct {
	Tries       int           // in all
	First, Most time.Duration // the longest pause after the first try, and after any: each is twice as long
	Least       int           // of a hundred parts of a pause that chance does not take away
}

// Pause returns how long to wait after so many tries, and false if there is none any more.
// random returns a duration from 0 to most.
func (r Retries) Pause(tries int, random func(most time.Duration) time.Duration) (time.Duration, bool) {
	if tries >= r.Tries {
		return 0, false
	}
	pause := r.First
	for range min(tries, 32) - 1 {
		pause = min(2*pause, r.Most)
	}
	sure := pause * time.Duration(r.Least) / 100
	return sure + random(pause-sure), true
}

type againKey struct{}

// WithAgain is for a method's context: who made it counts requests, and is asked before one that
// the method makes again.
func WithAgain(ctx context.Context, ask func(context.Context) error) context.Context {
	return context.WithValue(ctx, againKey{}, ask)
}

// Again is for drivers that make a request again: an error is why it is not to be made.
func Again(ctx context.Context) error {
	if ask, counted := ctx.Value(againKey{}).(func(context.Context) error); counted {
		return ask(ctx)
	}
	return nil
}
