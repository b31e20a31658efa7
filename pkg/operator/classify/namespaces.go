package classify

import (
	"cmp"
	"maps"
	"slices"
)

// Namespace is what is told of one.
type Namespace struct {
	Name, UID string
	Version   string // its resourceVersion
	Labels    map[string]string
}

// isNewer compares resourceVersions, which are ordered. A read and the watch tell of one namespace each in its own time.
func (n Namespace) isNewer(than Namespace) bool {
	x, y := n.Version, than.Version
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) > 0
}

// takeNamespace takes a namespace in, and tells whether that changes anything.
func (k *known) takeNamespace(n Namespace, deleted bool) bool {
	was, is := k.namespaces[n.Name]
	switch {
	case deleted && is && was.UID == n.UID:
		delete(k.namespaces, n.Name)
		return false // its pods go too
	case deleted, is && !n.isNewer(was):
		return false // of before what a read has told
	}
	k.namespaces[n.Name] = n
	return !is || !maps.Equal(was.Labels, n.Labels)
}

// namespacesOf returns those of pods, each once and in order.
func namespacesOf(pods []key) (names []string) {
	for _, k := range pods {
		names = append(names, k.namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
