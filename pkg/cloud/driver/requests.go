package driver

import "strings"

// Parts of methods, for Traits.Requests: a cloud may count the requests of a part as other actions
// than those of the rest of the method. A part without an entry of its own has that of its method.
const (
	SubnetsOne      = "Subnets.One"  // by the ID of one
	SubnetsBoth     = "Subnets.Both" // by IDs and by tags
	InterfacesMade  = "Interfaces.Made"
	InterfacesByID  = "Interfaces.IDs"
	InterfacesLoose = "Interfaces.Loose"
	AssignPrimary   = "Assign.Primary"
	UnassignPrimary = "Unassign.Primary"

	AssignCross        = "Assign.Cross" // addresses of another subnet
	AssignPrimaryCross = "Assign.Cross.Primary"
)

// Part returns the part of Subnets that a call with the filter is.
func (f SubnetFilter) Part() string {
	switch {
	case len(f.IDs) > 0 && len(f.Tags) > 0:
		return SubnetsBoth
	case len(f.IDs) == 1:
		return SubnetsOne
	}
	return "Subnets"
}

// Part returns the part of Interfaces that a call with the filter is.
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

// Part returns the part of Driver.Assign that a call with it is.
func (a Assign) Part() string {
	switch {
	case a.Subnet != "" && a.On.Primary:
		return AssignPrimaryCross
	case a.Subnet != "":
		return AssignCross
	case a.On.Primary:
		return AssignPrimary
	}
	return "Assign"
}

// Part returns the part of Driver.Unassign that a call with it is.
func (u Unassign) Part() string {
	if u.On.Primary {
		return UnassignPrimary
	}
	return "Unassign"
}

// ActionsOf returns the actions that a method or a part of one is made of, in their order.
func (t Traits) ActionsOf(part string) []string {
	if list, own := t.Requests[part]; own {
		return list
	}
	method, _, _ := strings.Cut(part, ".")
	return t.Requests[method]
}

// Describing returns the set of actions that change nothing.
func (t Traits) Describing() map[string]bool {
	looking := map[string]bool{}
	for _, method := range []string{"Shape", "Shapes", "Alive", "Subnets", SubnetsOne, SubnetsBoth, "Interfaces", InterfacesMade, InterfacesByID, InterfacesLoose, "Page", "Reservations"} {
		for _, action := range t.ActionsOf(method) {
			looking[action] = true
		}
	}
	return looking
}
