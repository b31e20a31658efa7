package capacity

import (
	"maps"
	"slices"
)

// group is the nodes of one zone: some that lie in one subnet each, and for each
// mixed one its number of ENIs.
type group struct {
	whole int
	mixed []int
}

// addZones adds what the zones carry, in order of their names.
func (p *Plan) addZones(in Input, perNode density) []group {
	free := map[string][]int{}
	available := map[string]int{}
	known := map[string]bool{}
	for _, z := range in.Zones {
		known[z] = true
	}
	for _, s := range in.Subnets {
		known[s.Zone] = true
		available[s.Zone] += s.Available
		if !s.Exclusive {
			free[s.Zone] = append(free[s.Zone], s.Available)
		}
	}
	// A zone where nodes are and no subnet is stays in the plan: it says why it carries none.
	var groups []group
	for _, z := range slices.Sorted(maps.Keys(known)) {
		g := perNode.fillSubnets(free[z], in.Mix)
		c := perNode.sumUp(available[z], g.whole, g.mixed)
		if _, found := available[z]; !found {
			c.Limit = NoSubnet
			p.addNote("zone %s has no subnet: it carries no node", z)
		} else if len(free[z]) == 0 {
			c.Limit = Exclusive
		}
		groups = append(groups, g)
		p.Zones = append(p.Zones, Zone{z, c})
		p.AtMost += perNode.atMost(free[z])
	}
	return groups
}

// fillSubnets puts as many whole nodes into each subnet as it carries, and mixed ones
// into what is left if that is allowed.
func (d density) fillSubnets(free []int, mix bool) group {
	var g group
	left := make([]room, len(free))
	for i, n := range free {
		r := d.roomOf(n)
		whole := d.wholeNodes(r)
		g.whole += whole
		left[i] = d.roomWithout(r, whole*d.enis, whole*d.blocks)
	}
	if mix {
		for _, pieces := range d.mixNodes(left) {
			n := 0
			for _, piece := range pieces {
				n += piece.ENIs
			}
			g.mixed = append(g.mixed, n)
		}
	}
	return g
}

// atMost bounds the nodes of a zone, however their ENIs are dealt out over its subnets.
func (d density) atMost(free []int) int {
	var all room
	for _, n := range free {
		r := d.roomOf(n)
		all.addresses, all.blocks = all.addresses+r.addresses, all.blocks+r.blocks
	}
	return d.wholeNodes(all)
}

// allOf returns the nodes of all zones.
func allOf(groups []group) (all group) {
	for _, g := range groups {
		all.whole += g.whole
		all.mixed = append(all.mixed, g.mixed...)
	}
	return all
}

// enisOf returns how many ENIs that number of nodes has: those that were found to fit, the cheapest first, and new ones beside
// them that lie in one subnet each. kept is how many each has besides.
func (g group) enisOf(nodes, each, kept int) int {
	sum := nodes * kept
	whole := min(nodes, g.whole)
	for _, n := range slices.Sorted(slices.Values(g.mixed))[:min(nodes-whole, len(g.mixed))] {
		sum, nodes = sum+n, nodes-1
	}
	return sum + nodes*each
}

// quotaLeft is what others leave of the quota.
func quotaLeft(in Input) int { return max(in.Quota-in.UsedENIs, 0) }

// sumZones adds up the zones and applies the quota, which is one for the whole VPC.
func (p *Plan) sumZones(in Input, perNode density, all group) {
	available := 0
	for _, z := range p.Zones {
		available += z.Available
	}
	p.ByIPs = all.whole + len(all.mixed)
	if !in.Mix {
		p.AtMost = p.ByIPs
	}
	p.Carries = perNode.sumUp(available, all.whole, all.mixed).boundBy(limitOf(in.Subnets))
	// A main interface is there with its instance: it counts against no quota.
	if in.Quota == 0 || in.Instance.MainNIC {
		return
	}
	left, each := quotaLeft(in), perNode.enis+in.KeptENIs
	byQuota := left / each
	p.ByQuota = &byQuota
	if p.ENIs+p.Nodes*in.KeptENIs <= left {
		return
	}
	p.Carries = perNode.sumUp(available, min(all.whole, byQuota), mixedWithin(all.mixed, left-all.whole*each, in.KeptENIs)).boundBy(ENIQuota)
}

// limitOf tells why no address of the subnets is for nodes; mostly there are some.
func limitOf(subnets []Subnet) Limit {
	switch {
	case len(subnets) == 0:
		return NoSubnet
	case !slices.ContainsFunc(subnets, func(s Subnet) bool { return !s.Exclusive }):
		return Exclusive
	}
	return Addresses
}

// mixedWithin returns the mixed nodes that fit into that number of ENIs, cheapest first; kept is how many each has besides.
func mixedWithin(mixed []int, enis, kept int) []int {
	var fit []int
	for _, n := range slices.Sorted(slices.Values(mixed)) {
		if enis -= n + kept; enis < 0 {
			break
		}
		fit = append(fit, n)
	}
	return fit
}
