package cce

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// The most that the schema of PodSubnetTopology takes.
const (
	mostName    = 63 // pods have it as a label
	mostSubnets = 16
	mostRanges  = 32
	mostLabels  = 16
	mostValues  = 32
)

// check tells what of the topology the API server would not take.
func (i *imported) check() error {
	spec := i.topology.Spec
	if n := len(spec.Subnets); n > mostSubnets {
		return fmt.Errorf("it names %d subnets; a topology has %d at most", n, mostSubnets)
	}
	for _, from := range spec.Subnets {
		if n := len(from.Ranges); n > mostRanges {
			return fmt.Errorf("subnet %s has %d ranges; %d are the most", from.ID, n, mostRanges)
		}
	}
	for name, s := range map[string]crd.Selector{"selector": spec.PodSelector, "namespaceSelector": spec.NamespaceSelector} {
		if err := checkSelector(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err := i.topology.Read()
	return err
}

func checkSelector(s crd.Selector) error {
	if len(s.MatchLabels) > mostLabels || len(s.MatchExpressions) > mostLabels {
		return fmt.Errorf("it has more than %d labels or expressions", mostLabels)
	}
	for _, e := range s.MatchExpressions {
		needs := e.Operator == "In" || e.Operator == "NotIn"
		if len(e.Values) > mostValues || needs != (len(e.Values) > 0) {
			return fmt.Errorf("the values of %s %s are too many, or missing, or none are wanted", e.Key, e.Operator)
		}
	}
	return nil
}

// chooseName returns a name that no other topology has: that of a psts has its namespace before it, since topologies have none. One that
// is too long or taken ends with digits of what it was.
func chooseName(o object, taken map[string]bool) string {
	name := o.Metadata.Name
	if o.Metadata.Namespace != "" {
		name = o.Metadata.Namespace + "-" + name
	}
	if len(name) <= mostName && !taken[name] {
		return name
	}
	sum := sha256.Sum256([]byte(o.title()))
	return strings.TrimRight(name[:min(len(name), mostName-9)], "-.") + "-" + hex.EncodeToString(sum[:4])
}

// noteTies names topologies of one priority that may match the same pods: CCE takes any of them, here there is an order.
func noteTies(all []imported) {
	for i := range all {
		var rivals []string
		for k := range all {
			if k != i && mayTie(all[i].topology.Spec, all[k].topology.Spec) {
				rivals = append(rivals, all[k].topology.Name)
			}
		}
		if len(rivals) > 0 {
			all[i].note("priority %d is that of %s too: a pod of both gets the one with a podSelector, then with a namespaceSelector, then the older, then the first by name; give them priorities",
				all[i].topology.Spec.Priority, strings.Join(rivals, ", "))
		}
	}
}

func mayTie(a, b crd.TopologySpec) bool {
	return a.Priority == b.Priority && mayMeet(a.NamespaceSelector, b.NamespaceSelector) && mayMeet(a.PodSelector, b.PodSelector)
}

// mayMeet tells whether something may match both selectors, by labels that they want to be something else.
func mayMeet(a, b crd.Selector) bool {
	for key, value := range a.MatchLabels {
		if other, has := b.MatchLabels[key]; has && other != value {
			return false
		}
	}
	return true
}

// noteShared says what becomes of subnets that are not the topologies' alone.
func noteShared(all []imported, exclusive map[string]bool) {
	for i := range all {
		var shared []string
		for _, from := range all[i].topology.Spec.Subnets {
			if !exclusive[from.ID] && !slices.Contains(shared, from.ID) {
				shared = append(shared, from.ID)
			}
		}
		if len(shared) > 0 {
			all[i].note("%s: the operator makes a Shared Subnet of what it finds by tag, and nodes' ENIs may lie there; make one with use: Exclusive if it is for topologies alone", strings.Join(shared, ", "))
		}
	}
}
