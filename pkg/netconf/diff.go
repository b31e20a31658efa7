package netconf

import (
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
)

// Diff returns what must be added to and removed from have to get want. have is
// what the kernel shows of ours; obsolete is what an earlier want held, for
// objects that can't carry our protocol number: addresses are only removed if
// they stand there. Routes with IfNone are satisfied by any route to the same
// destination. A route of others that is in the way stays, see Misrouted. Of want's pods, those count whose links have shows.
func Diff(have, want, obsolete Node) (add, remove Node) {
	want = want.withPods(have.PodLinks)
	add.Sysctls = subtract(want.Sysctls, have.Sysctls)
	add.Links = subtract(want.Links, have.Links)
	for _, w := range want.Addrs {
		// Whether the system put a connected route beside its own address is its
		// business; that none is beside ours is ours.
		same := func(h Addr) bool { return h == w || !w.NoPrefixRoute && h.Prefix == w.Prefix && h.Dev == w.Dev }
		if !slices.ContainsFunc(have.Addrs, same) {
			add.Addrs = append(add.Addrs, w)
		}
	}
	there := setOf(have.Routes)
	for _, w := range want.Routes {
		another := func(h Route) bool { return h.Dst == w.Dst && h.Table == w.Table }
		if !there[w] && !takenByOthers(w, have.Others) && !(w.IfNone && slices.ContainsFunc(have.Routes, another)) {
			add.Routes = append(add.Routes, w)
		}
	}
	have.Rules = rulesAsWanted(have.Rules, want.Rules)
	add.Rules = subtract(want.Rules, have.Rules)
	add.Neighs = subtract(want.Neighs, have.Neighs)
	for _, o := range subtract(obsolete.Addrs, want.Addrs) {
		if slices.Contains(have.Addrs, o) {
			remove.Addrs = append(remove.Addrs, o)
		}
	}
	remove.Routes = surplusRoutes(have, want)
	remove.Rules = slices.DeleteFunc(subtract(have.Rules, want.Rules), func(r Rule) bool {
		return r.Priority == PriorityPods && !podsRuleIsSurplus(r, have, want)
	})
	return add, remove
}

// rulesAsWanted returns have with the rules of an earlier release that differ from a
// wanted one in nothing else: that is as good, unless both are there.
func rulesAsWanted(have, want []Rule) []Rule {
	have = slices.Clone(have)
	for i, r := range have {
		r.Earlier = false
		if have[i].Earlier && slices.Contains(want, r) && !slices.Contains(have, r) {
			have[i] = r
		}
	}
	return have
}

// OldMasks returns the masks of those rules for marks that have another one.
func OldMasks(rules []Rule, mask uint32) []uint32 {
	var masks []uint32
	for _, r := range rules {
		if r.Priority == PriorityMark && r.Mask != mask && !slices.Contains(masks, r.Mask) {
			masks = append(masks, r.Mask)
		}
	}
	slices.Sort(masks)
	return masks
}

// surplusRoutes returns the routes of ours that nothing wants any more. A route in
// PodsTable is one only where its pod's address has moved: else it goes with its link, and a link of ours that the node state
// does not know is a pod that may live. In the main table it is what an earlier
// release left of a pod whose route stands in PodsTable by now, or the node's default
// route where the system has its own again.
func surplusRoutes(have, want Node) []Route {
	wanted, there := setOf(want.Routes), setOf(have.Routes)
	var surplus []Route
	for _, route := range have.Routes {
		switch {
		case slices.Contains(want.Moved, route):
			surplus = append(surplus, route)
		case wanted[route] && !route.IfNone || route.Table == PodsTable:
		case route.Table != MainTable:
			surplus = append(surplus, route)
		case route.IfNone:
			systems := func(o Route) bool { return !o.IfNone && o.Dst == route.Dst && o.Table == route.Table }
			if slices.ContainsFunc(have.Routes, systems) {
				surplus = append(surplus, route) // without a metric it would come before the system's
			}
		case route.leftInMain():
			moved := route
			moved.Table = PodsTable
			if wanted[moved] && there[moved] {
				surplus = append(surplus, route)
			}
		}
	}
	return surplus
}

// podsRuleIsSurplus tells whether a rule that finds pods may go though nothing wants
// it. That of PodsTable stays while the node state is of a release without the table: pods
// may have their routes there from before a downgrade. That of the main table goes
// after the last pod's route there.
func podsRuleIsSurplus(r Rule, have, want Node) bool {
	if r.Table == PodsTable {
		return !slices.Contains(want.Rules, podsRule(ipam.Settings{PodsInMain: true}, r.IPv6))
	}
	return !slices.ContainsFunc(have.Routes, func(h Route) bool { return h.leftInMain() && h.Dst.Addr().Is6() == r.IPv6 })
}

func setOf[T comparable](items []T) map[T]bool {
	set := make(map[T]bool, len(items))
	for _, i := range items {
		set[i] = true
	}
	return set
}

func subtract[T comparable](items, drop []T) []T {
	gone := setOf(drop)
	var left []T
	for _, i := range items {
		if !gone[i] {
			left = append(left, i)
		}
	}
	return left
}

// Lines returns one line per object, each with the prefix.
func (n Node) Lines(prefix string) []string {
	var lines []string
	for _, s := range n.Sysctls {
		lines = append(lines, prefix+"sysctl "+s.String())
	}
	for _, l := range n.Links {
		lines = append(lines, prefix+"link "+l+" up")
	}
	for _, a := range n.Addrs {
		lines = append(lines, prefix+"addr "+a.String())
	}
	for _, r := range n.Routes {
		lines = append(lines, prefix+"route "+r.String())
	}
	for _, r := range n.Rules {
		lines = append(lines, prefix+"rule "+r.String())
	}
	for _, neigh := range n.Neighs {
		lines = append(lines, prefix+"neigh "+neigh.String())
	}
	return lines
}
