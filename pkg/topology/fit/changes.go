package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/topology"
)

// howToMend says what to do about a topology that can't be served.
func (p *planner) howToMend(of topology.Topology, why topology.Unready) []string {
	switch why.Reason {
	case topology.UnreadyNoSubnet:
		var list []string
		for _, from := range of.Sources {
			if p.uses[from.Subnet] == nil {
				list = append(list, fmt.Sprintf("the network of subnet %s is not known", from.Subnet))
			} else {
				list = append(list, fmt.Sprintf("subnet %s is Disabled: set use: Exclusive", from.Subnet))
			}
		}
		return list
	case topology.UnreadyOutside:
		return []string{why.Message + ": correct the range"}
	case topology.UnreadyOverlap:
		return []string{why.Message}
	}
	for _, from := range of.Sources {
		if err := p.tooMany[from.Subnet]; err != nil {
			return []string{fmt.Sprintf("subnet %s is not Exclusive, and its ranges can't be reserved in the cloud, since %s: let ranges begin and end at powers of two, or set use: Exclusive on it", from.Subnet, err)}
		}
	}
	return []string{why.Message}
}

// noteUnknown says which subnets count for nothing of a topology that holds its pods without them: a name may be misspelt.
func (p *planner) noteUnknown(of topology.Topology) (list []string) {
	for _, from := range of.Sources {
		if p.uses[from.Subnet] == nil {
			list = append(list, fmt.Sprintf("the network of subnet %s of topology %s is not known: it is taken to have no address", from.Subnet, of.Name))
		}
	}
	return list
}

// keptOfNew is how many addresses of a new subnet the cloud gives to nobody. EC2 keeps the most.
const keptOfNew = 5

// whatIsMissing says what to do for pods of a topology that have no address.
func (p *planner) whatIsMissing(a Asked, pods int) (list []string) {
	for _, from := range a.Sources {
		s := p.uses[from.Subnet]
		switch {
		case s == nil:
			list = append(list, fmt.Sprintf("the network of subnet %s is not known: it is taken to have no address", from.Subnet))
		case len(from.Ranges) == 0:
		case p.roomIn(a.Topology, from) > p.ranged[source{a.Name, from.Subnet}]:
			list = append(list, fmt.Sprintf("subnet %s has %d addresses left outside of ranges, and each ENI that carries these pods takes one: leave more of them out of the ranges", s.Subnet, s.Left))
		case s.Left > 0:
			list = append(list, fmt.Sprintf("name up to %d addresses more in its ranges of subnet %s", s.Left, s.Subnet))
		}
	}
	enis := " and their ENIs"
	if p.Across {
		enis = ""
	}
	return append(list, fmt.Sprintf("add an Exclusive subnet of /%d or larger to it, which has room for %d pods%s", p.prefixFor(pods), pods, enis))
}

// prefixFor returns the smallest new subnet that holds that number of pods.
func (p *planner) prefixFor(pods int) int {
	bits := 28 // clouds make none smaller
	for bits > 8 && 1<<(32-bits)-keptOfNew < pods+p.enisFor(pods) {
		bits--
	}
	return bits
}

// noteAll says what people should know, though all pods have addresses.
func (p *planner) noteAll(pods int) (list []string) {
	if p.Places == 0 && pods > 0 {
		list = append(list, fmt.Sprintf("no place of a node is kept for the %d pods of topologies: on nodes that other pods fill they wait", pods))
	}
	zones := map[string][]string{}
	for _, id := range p.namedSubnets() {
		s := p.uses[id]
		if s.Exclusive { // in a Shared one the node's other ENIs carry them too
			zones[s.Zone] = append(zones[s.Zone], id)
		}
		if err := p.tooMany[id]; err != nil {
			list = append(list, fmt.Sprintf("subnet %s: %s: its ranges are not reserved in the cloud", id, err))
		}
		// It stays when its last pod has gone: in the end each node may have one there.
		if more := p.Nodes - s.ENIs; !p.Across && s.Pods > 0 && more > s.Left {
			list = append(list, fmt.Sprintf("subnet %s has %d addresses left, and each node that ever runs a pod of it keeps an ENI there: up to %d more", id, s.Left, more))
		}
	}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		if n := len(zones[zone]); p.ENIs > 0 && n > p.ENIs {
			in, enis := "", "1 ENI"
			if zone != "" {
				in = " in zone " + zone
			}
			if p.ENIs > 1 {
				enis = fmt.Sprintf("%d ENIs", p.ENIs)
			}
			list = append(list, fmt.Sprintf("a node keeps %s, and topologies have %d Exclusive subnets%s (%s): it carries pods of %d of them at once",
				enis, n, in, strings.Join(zones[zone], ", "), p.ENIs))
		}
	}
	return list
}
