package claims

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// What a decision goes through, in order: all there is, or what is not quiet.

func (d *decision) busyClaims() []netip.Addr {
	if d.quiet == nil {
		return slices.SortedFunc(maps.Keys(d.claims), netip.Addr.Compare)
	}
	return slices.SortedFunc(maps.Keys(d.quiet.busy.claims), netip.Addr.Compare)
}

func (d *decision) busyPods() []Name {
	if d.quiet == nil {
		return slices.SortedFunc(maps.Keys(d.pods), Name.compare)
	}
	return slices.SortedFunc(maps.Keys(d.quiet.busy.pods), Name.compare)
}

func (d *decision) busyNodes() []string {
	if d.quiet == nil {
		return slices.Sorted(maps.Keys(d.nodes))
	}
	return slices.Sorted(maps.Keys(d.quiet.busy.nodes))
}

// claimsOf returns the addresses of the claims of a name, in order.
func (k *Known) claimsOf(of Name) []netip.Addr {
	return slices.SortedFunc(slices.Values(k.index.Named(of.Namespace, of.Name)), netip.Addr.Compare)
}

func (n Name) compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, other.Namespace), cmp.Compare(n.Name, other.Name))
}

// markPod has a pod decided about again.
func (k *Known) markPod(of Name) {
	k.quiet.busy.pods[of] = true
	for _, at := range k.index.Named(of.Namespace, of.Name) {
		k.quiet.busy.claims[at] = true
	}
}

// markClaim has a claim decided about again. Addresses without one are passed over.
func (k *Known) markClaim(at netip.Addr) {
	if _, is := k.claims[at]; is {
		k.quiet.busy.claims[at] = true
	}
}

// markNamesakes has a claim decided about again, and others of its name: one of them may be one too many.
func (k *Known) markNamesakes(at netip.Addr) {
	k.markClaim(at)
	for _, other := range k.index.Named(k.claims[at].Namespace, k.claims[at].Pod) {
		k.markClaim(other)
	}
}

// markNode has a node decided about again, and the claims of its addresses. What it has beside those is counted, or no more by -1.
func (k *Known) markNode(n Node, by int) {
	k.quiet.busy.nodes[n.Name] = true
	for _, e := range n.ENIs {
		for _, at := range e.Addresses {
			k.markClaim(at)
		}
		for _, at := range e.Primaries {
			k.countBeside(at, by)
		}
	}
	for _, r := range n.Reserved {
		k.countBeside(r.Addr, by)
	}
	for at := range n.Quarantined { // a call of before may take it away again
		k.countBeside(at, by)
	}
	k.markOpen(n.Open, by)
}

// markOpen does that for what calls are about.
func (k *Known) markOpen(open map[netip.Addr]bool, by int) {
	for at := range open {
		k.markClaim(at)
		k.countBeside(at, by)
		if k.open[at] += by; k.open[at] == 0 {
			delete(k.open, at)
		}
	}
}

// countShown counts the addresses that a pod shows, or no more by -1. It may have one that is kept for nobody any more, by a node whose agent did not know
// that: another pod that is given it, and comes to the same node, would wait for as long as the first one runs.
func (k *Known) countShown(p Pod, by int) {
	for _, at := range p.shown() {
		k.countBeside(at, by)
	}
}

// shown returns the addresses that a pod shows and may have.
func (p Pod) shown() (list []netip.Addr) {
	for _, at := range []netip.Addr{p.V4, p.V6} {
		if at.IsValid() && !p.Ended {
			list = append(list, at)
		}
	}
	return list
}

func (k *Known) countBeside(at netip.Addr, by int) {
	if k.beside[at] += by; k.beside[at] == 0 {
		delete(k.beside, at)
	}
}
