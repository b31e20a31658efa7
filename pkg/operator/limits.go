package operator

import (
	"cmp"
	"maps"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// mostAsked is how many instances are asked in one describe what they can carry, where the cloud does not tell that of types: at
// Baidu's rates that takes a minute, for which the describe's other nodes wait.
const mostAsked = 100

// unlimited returns those of the nodes whose instances are to be asked what they can carry, first those whose pods wait. Where that is a
// request for each, what an object has of the same instance counts at first, and some of these are asked in each later describe of everything.
func (t *term) unlimited(members map[string]*member, all bool) map[string]*member {
	byType := t.o.Region.Does().Types
	refresh := byType || all && !t.looks.shown.IsZero()
	asked := maps.Clone(members)
	maps.DeleteFunc(asked, func(_ string, m *member) bool { return m.limits != (eni.Limits{}) && !(m.recalled && refresh) })
	if byType || len(asked) <= mostAsked {
		return asked
	}
	names := slices.SortedFunc(maps.Keys(asked), func(a, b string) int {
		return cmp.Or(cmp.Compare(asked[a].askedAfter(), asked[b].askedAfter()), cmp.Compare(a, b))
	})
	for _, name := range names[mostAsked:] {
		delete(asked, name)
	}
	return asked
}

// askedAfter orders nodes that are asked what they can carry.
func (m *member) askedAfter() int {
	switch {
	case m.limits != (eni.Limits{}):
		return 2
	case m.view.Spec.Waiting > 0:
		return 0
	}
	return 1
}

// recallLimits takes what the object has of the instance, so that who leads next need not ask thousands of them before it can serve any.
func (m *member) recallLimits(n *crd.NodeNetwork) {
	s := n.Status
	if m.limits == (eni.Limits{}) && m.node.Instance != "" && s.Instance == m.node.Instance && s.InstanceType == m.node.Type {
		m.limits = s.Limits.Read()
		m.recalled = m.limits != (eni.Limits{})
	}
}
