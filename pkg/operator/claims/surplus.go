package claims

import (
	"cmp"

	"github.com/enipool/enipool/pkg/topology"
)

// isSurplus tells whether a claim is one too many of its name: a request to make one may land minutes after its sender has given up, and made another
// one. The one stays that its pod has, or that has been somewhere: pods of the name are known by its address.
func (k *Known) isSurplus(c topology.Claim) bool {
	for _, at := range k.index.Named(c.Namespace, c.Pod) {
		other, is := k.claims[at]
		if !is || at == c.Addr || other.Topology != c.Topology || other.Family() != c.Family() || other.object.DeletionTimestamp != nil || other.Phase == topology.Releasing {
			continue
		}
		if goesBefore(other.Claim, c) {
			return true
		}
	}
	return false
}

// goesBefore tells whether of two claims of a name the first one stays.
func goesBefore(a, b topology.Claim) bool {
	first := func(yes bool) int {
		if yes {
			return 0
		}
		return 1
	}
	return cmp.Or(
		first(a.Phase == topology.Bound)-first(b.Phase == topology.Bound),
		first(a.Node != "")-first(b.Node != ""),
		first(a.Phase != "")-first(b.Phase != ""),
		a.Addr.Compare(b.Addr)) < 0
}
