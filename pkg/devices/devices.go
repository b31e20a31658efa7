// Package devices decides what a node shows the scheduler of its ENIs: one device per ENI with so many addresses
// to reserve, whose sum is the number of pods that can have one. It is pure.
package devices

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Most is how many devices a node shows. The API takes so many in one ResourceSlice.
const Most = 128

// prefix is what the names of devices begin with.
const prefix = "eni"

// Device is an ENI as the scheduler counts it.
type Device struct {
	// Name is the ENI's place in allocation order, as eni0. Not its ID: the plugin takes addresses by that order, whichever device
	// was reserved, and an ENI that goes would take with it what pods have reserved of it.
	Name      string
	ENI       string // the ID of the ENI that has that place now, "" where it is still to be attached
	Addresses int    // that may be reserved of it, at least 1
}

// Node is what the devices of a node are made of.
type Node struct {
	Total  int      // how many pods can have an address
	ENIs   []string // IDs of the attached ENIs that have addresses for pods, in allocation order
	PerENI int      // slots of an ENI, 0 if that is not known
}

// List returns the devices of a node of whose devices so many addresses are reserved by name. Their addresses sum up to Total, or to
// what is reserved where that is more. Attached ENIs come first, then those that may be attached yet.
//
// A device has never less than what is reserved of it: what one has too many the scheduler would not see as missing on another.
func (n Node) List(reserved map[string]int) []Device {
	room, per := n.Total, n.PerENI
	if per <= 0 {
		per = max(n.Total, 1)
	}
	places := min(max((n.Total+per-1)/per, lastPlace(reserved)+1), Most)
	addresses := make([]int, max(places, 0))
	for name, count := range reserved {
		if i := placeOf(name); i >= 0 && i < len(addresses) {
			addresses[i] = count
			room -= count
		}
	}
	for i := range addresses {
		more := min(max(per-addresses[i], 0), max(room, 0))
		if i == Most-1 {
			more = max(room, 0) // there is no place after it
		}
		addresses[i] += more
		room -= more
	}
	var list []Device
	for i, count := range addresses {
		if count == 0 {
			continue // the scheduler has nothing to choose there
		}
		d := Device{Name: prefix + strconv.Itoa(i), Addresses: count}
		if i < len(n.ENIs) {
			d.ENI = n.ENIs[i]
		}
		list = append(list, d)
	}
	return list
}

// placeOf returns the place that a device's name says, -1 if it is no such name.
func placeOf(name string) int {
	digits, is := strings.CutPrefix(name, prefix)
	i, err := strconv.Atoi(digits)
	if !is || err != nil || i < 0 || i >= Most || digits != strconv.Itoa(i) {
		return -1
	}
	return i
}

// lastPlace returns the highest place of which something is reserved, -1 for none.
func lastPlace(reserved map[string]int) int {
	last := -1
	for name, count := range reserved {
		if count > 0 {
			last = max(last, placeOf(name))
		}
	}
	return last
}

// Claim is a reservation that the kubelet has had prepared on the node. It counts until the kubelet has it unprepared.
type Claim struct {
	UID       string   `json:"uid"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Devices   []string `json:"devices"` // one name for each address that is reserved
}

// Reserved returns how many addresses claims reserve of each device.
func Reserved(claims []Claim) map[string]int {
	reserved := map[string]int{}
	for _, c := range claims {
		for _, name := range c.Devices {
			reserved[name]++
		}
	}
	return reserved
}

// Pod is a pod of the node that needs an address, as far as reservations go.
type Pod struct {
	Namespace string
	Extended  int    // addresses that the scheduler reserved because the pod asks for the resource
	Claims    string // names of its ResourceClaims, which may be of other drivers too, with blanks in between
	Starts    bool   // its claims may not be prepared yet
}

// names tells whether the pod names the claim.
func (p Pod) names(c Claim) bool {
	return p.Namespace == c.Namespace && slices.Contains(strings.Fields(p.Claims), c.Name)
}

// Memory is which claims the kubelet had prepared. It has them unprepared moments before it says that their pods are done with, and
// until then the scheduler counts them.
type Memory struct{ had, ended []Claim }

// Count returns what Share does of the claims that are prepared now and those that no longer are though pods still name them.
func (m *Memory) Count(pods []Pod, claims []Claim) (reserved, silent int) {
	m.ended = slices.DeleteFunc(slices.Concat(m.ended, m.had), func(c Claim) bool {
		isPrepared := slices.ContainsFunc(claims, func(is Claim) bool { return is.UID == c.UID })
		return isPrepared || !slices.ContainsFunc(pods, func(p Pod) bool { return p.names(c) })
	})
	m.had = claims
	return Share(pods, slices.Concat(claims, m.ended))
}

// Share returns how many of the pods have an address reserved, and how many take one without. A pod with claims that starts
// counts among the first: the kubelet prepares its claims within moments, and until then nobody here knows whose they are. A claim that several pods share reserves for no more pods than it has addresses.
func Share(pods []Pod, claims []Claim) (reserved, silent int) {
	type key struct{ namespace, name string }
	left := make(map[key]int, len(claims))
	for _, c := range claims {
		left[key{c.Namespace, c.Name}] += len(c.Devices)
	}
	ours := maps.Clone(left)
	for _, p := range pods {
		names := strings.Fields(p.Claims)
		known := slices.ContainsFunc(names, func(name string) bool { return ours[key{p.Namespace, name}] > 0 })
		i := slices.IndexFunc(names, func(name string) bool { return left[key{p.Namespace, name}] > 0 })
		switch {
		case p.Extended > 0:
			reserved += p.Extended
		case i >= 0:
			left[key{p.Namespace, names[i]}]--
			reserved++
		case !known && len(names) > 0 && p.Starts:
			reserved++
		default:
			silent++
		}
	}
	return reserved, silent
}
