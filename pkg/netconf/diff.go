package netconf

import "slices"

// Diff returns what must be added to and removed from have to get want. have is
// what the kernel shows of ours; obsolete is what an earlier want held, for
// objects that can't carry our protocol number: addresses are only removed if
// they stand there. Routes with IfNone are satisfied by any route to the same
// destination.
func Diff(have, want, obsolete Node) (add, remove Node) {
	add.Sysctls = without(want.Sysctls, have.Sysctls)
	add.Links = without(want.Links, have.Links)
	for _, w := range want.Addrs {
		// Whether the system put a connected route beside its own address is its
		// business; that none is beside ours is ours.
		same := func(h Addr) bool { return h == w || !w.NoPrefixRoute && h.Prefix == w.Prefix && h.Dev == w.Dev }
		if !slices.ContainsFunc(have.Addrs, same) {
			add.Addrs = append(add.Addrs, w)
		}
	}
	for _, w := range want.Routes {
		same := func(h Route) bool {
			if w.IfNone {
				return h.Dst == w.Dst && h.Table == w.Table
			}
			return h == w
		}
		if !slices.ContainsFunc(have.Routes, same) {
			add.Routes = append(add.Routes, w)
		}
	}
	add.Rules = without(want.Rules, have.Rules)
	for _, o := range without(obsolete.Addrs, want.Addrs) {
		if slices.Contains(have.Addrs, o) {
			remove.Addrs = append(remove.Addrs, o)
		}
	}
	for _, h := range have.Routes {
		if h.Table != MainTable && !slices.Contains(want.Routes, h) {
			remove.Routes = append(remove.Routes, h)
		}
	}
	remove.Rules = without(have.Rules, want.Rules)
	return add, remove
}

func without[T comparable](items, drop []T) []T {
	gone := make(map[T]bool, len(drop))
	for _, d := range drop {
		gone[d] = true
	}
	var left []T
	for _, i := range items {
		if !gone[i] {
			left = append(left, i)
		}
	}
	return left
}

// Lines returns one line an object, each with the prefix.
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
	return lines
}
