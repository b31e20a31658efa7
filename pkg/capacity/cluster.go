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
func (p *Plan) addZones(in Input, d density) []group {
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
	var groups []group
	for _, z := range slices.Sorted(maps.Keys(known)) {
		g := d.fill(free[z], in.Mix)
		c := d.carries(available[z], g.whole, g.mixed)
		if _, found := available[z]; !found {
			c.Limit = NoSubnet
			p.note("zone %s has no subnet: it carries no node", z)
		} else if len(free[z]) == 0 {
			c.Limit = Exclusive
		}
		groups = append(groups, g)
		p.Zones = append(p.Zones, Zone{z, c})
		p.AtMost += d.atMost(free[z])
	}
	return groups
}

// fill puts as many whole nodes into each subnet as it carries, and mixed ones
// into what is left if that is allowed.
func (d density) fill(free []int, mix bool) group {
	var g group
	left := make([]room, len(free))
	for i, n := range free {
		r := d.room(n)
		whole := d.nodes(r)
		g.whole += whole
		left[i] = d.less(r, whole*d.enis, whole*d.blocks)
	}
	if mix {
		for _, pieces := range d.mix(left) {
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
		r := d.room(n)
		all.addresses, all.blocks = all.addresses+r.addresses, all.blocks+r.blocks
	}
	return d.nodes(all)
}

// total adds up the zones and applies the quota, which is one for the whole VPC.
func (p *Plan) total(in Input, d density, groups []group) {
	var all group
	for _, g := range groups {
		all.whole += g.whole
		all.mixed = append(all.mixed, g.mixed...)
	}
	available := 0
	for _, z := range p.Zones {
		available += z.Available
	}
	p.ByIPs = all.whole + len(all.mixed)
	if !in.Mix {
		p.AtMost = p.ByIPs
	}
	p.Carries = d.carries(available, all.whole, all.mixed).bound(unusable(in.Subnets))
	if in.Quota == 0 || in.Machine.MainNIC {
		return
	}
	left := max(in.Quota-in.UsedENIs, 0)
	byQuota := left / d.enis
	p.ByQuota = &byQuota
	if p.ENIs <= left {
		return
	}
	p.note("%d nodes need %d ENIs, of a quota of %d there are %d left: that is %d nodes", p.ByIPs, p.ENIs, in.Quota, left, byQuota)
	p.Carries = d.carries(available, min(all.whole, byQuota), within(all.mixed, left-all.whole*d.enis)).bound(ENIQuota)
}

// unusable tells why no address of the subnets is for nodes; mostly there are some.
func unusable(subnets []Subnet) Limit {
	switch {
	case len(subnets) == 0:
		return NoSubnet
	case !slices.ContainsFunc(subnets, func(s Subnet) bool { return !s.Exclusive }):
		return Exclusive
	}
	return Addresses
}

// within returns the mixed nodes that fit into so many ENIs, cheapest first.
func within(mixed []int, enis int) []int {
	var fit []int
	for _, n := range slices.Sorted(slices.Values(mixed)) {
		if enis -= n; enis < 0 {
			break
		}
		fit = append(fit, n)
	}
	return fit
}
