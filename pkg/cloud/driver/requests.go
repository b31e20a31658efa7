package driver

import "strings"

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
