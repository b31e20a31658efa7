package crd

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject implements runtime.Object.
func (t *PodSubnetTopology) DeepCopyObject() runtime.Object { return t.DeepCopy() }

// DeepCopy returns a copy that shares nothing with t.
func (t *PodSubnetTopology) DeepCopy() *PodSubnetTopology {
	c := *t
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.NamespaceSelector, c.Spec.PodSelector = t.Spec.NamespaceSelector.deepCopy(), t.Spec.PodSelector.deepCopy()
	c.Spec.Subnets = slices.Clone(t.Spec.Subnets)
	for i, from := range c.Spec.Subnets {
		c.Spec.Subnets[i].Ranges = slices.Clone(from.Ranges)
	}
	for _, n := range []**int32{&c.Status.Pods, &c.Status.Claims, &c.Status.Room} {
		if *n != nil {
			count := **n
			*n = &count
		}
	}
	c.Status.Zones = slices.Clone(t.Status.Zones)
	c.Status.Conditions = slices.Clone(t.Status.Conditions)
	return &c
}

func (s Selector) deepCopy() Selector {
	s.MatchLabels, s.MatchExpressions = maps.Clone(s.MatchLabels), slices.Clone(s.MatchExpressions)
	for i, e := range s.MatchExpressions {
		s.MatchExpressions[i].Values = slices.Clone(e.Values)
	}
	return s
}

// DeepCopyObject implements runtime.Object.
func (l *PodSubnetTopologyList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copiedAll(l.Items, (*PodSubnetTopology).DeepCopy)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (a *AddressClaim) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopy returns a copy that shares nothing with a.
func (a *AddressClaim) DeepCopy() *AddressClaim {
	c := *a
	a.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if a.Spec.Workload != nil {
		workload := *a.Spec.Workload
		c.Spec.Workload = &workload
	}
	c.Status.FreeSince = a.Status.FreeSince.DeepCopy()
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *AddressClaimList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copiedAll(l.Items, (*AddressClaim).DeepCopy)
	return &c
}
