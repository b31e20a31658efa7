package topology

import "slices"

// Selector selects by labels, as one of Kubernetes does: all of it has to match. One that asks for nothing matches everything.
type Selector struct {
	Labels       map[string]string
	Requirements []Requirement
}

// Requirement is what a selector asks of one label.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string // of In and NotIn
}

// Operator is how a label is compared.
type Operator string

// The operators. NotIn matches what lacks the label, too.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Empty tells whether it asks for nothing, and so matches everything.
func (s Selector) Empty() bool { return len(s.Labels)+len(s.Requirements) == 0 }

// Matches tells whether the labels are as the selector asks.
func (s Selector) Matches(labels map[string]string) bool {
	for key, want := range s.Labels {
		if value, has := labels[key]; !has || value != want {
			return false
		}
	}
	return !slices.ContainsFunc(s.Requirements, func(r Requirement) bool { return !r.matches(labels) })
}

func (r Requirement) matches(labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case In:
		return has && slices.Contains(r.Values, value)
	case NotIn:
		return !has || !slices.Contains(r.Values, value)
	case Exists:
		return has
	case DoesNotExist:
		return !has
	}
	return false // of a later release: nobody knows what it asks for
}
