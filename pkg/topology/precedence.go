package topology

import (
	"cmp"
	"slices"
)

// systemNamespace has what a cluster needs to work at all. A rule for all pods is not meant for those of it.
const systemNamespace = "kube-system"

// Matches tells whether the topology is one for the pod. Pods of the system's namespace need one that names namespaces.
func (t Topology) Matches(p Pod) bool {
	if p.Namespace == systemNamespace && t.Namespaces.Empty() {
		return false
	}
	return t.Namespaces.Matches(p.NamespaceLabels) && t.Pods.Matches(p.Labels)
}

// Compare puts the topology before that goes first: the one with the higher priority, then one that selects pods, one that selects
// namespaces, the older one, and by name. No two of a cluster are equal.
func Compare(a, b Topology) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		firstWith(!a.Pods.Empty(), !b.Pods.Empty()),
		firstWith(!a.Namespaces.Empty(), !b.Namespaces.Empty()),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Name, b.Name),
	)
}

func firstWith(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Find returns the topology that a pod belongs to: of those that match it the first in the order of Compare, whatever its state. One
// that isn't ready does not fall through to the next: what a firewall goes by must not become something else without a word.
func Find(p Pod, topologies []Topology) (Topology, bool) {
	matching := slices.DeleteFunc(slices.Clone(topologies), func(t Topology) bool { return !t.Matches(p) })
	if len(matching) == 0 {
		return Topology{}, false
	}
	return slices.MinFunc(matching, Compare), true
}
