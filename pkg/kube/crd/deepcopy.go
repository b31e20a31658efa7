package crd

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Clients change the copies that they get of a cache, so no pointer, slice or map may be shared. A
// test fills every field and changes the copy.

// DeepCopyObject implements runtime.Object.
func (n *NodeNetwork) DeepCopyObject() runtime.Object { return n.DeepCopy() }

// DeepCopy returns a copy that shares nothing with n.
func (n *NodeNetwork) DeepCopy() *NodeNetwork {
	c := *n
	n.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec = n.Spec.copied()
	c.Status = n.Status.copied()
	return &c
}

func (s NodeNetworkSpec) copied() NodeNetworkSpec {
	s.Families, s.IdleIn = slices.Clone(s.Families), maps.Clone(s.IdleIn)
	s.WaitingSince = s.WaitingSince.DeepCopy()
	s.Release = slices.Clone(s.Release)
	s.ReleaseInterfaces = slices.Clone(s.ReleaseInterfaces)
	s.Held, s.NoLink, s.Idle = slices.Clone(s.Held), slices.Clone(s.NoLink), slices.Clone(s.Idle)
	s.Topologies = slices.Clone(s.Topologies)
	if s.Handover != nil {
		s.Handover = &Handover{Tokens: slices.Clone(s.Handover.Tokens), Release: slices.Clone(s.Handover.Release),
			ReleaseInterfaces: slices.Clone(s.Handover.ReleaseInterfaces)}
	}
	return s
}

func (s NodeNetworkStatus) copied() NodeNetworkStatus {
	s.DescribedAt = s.DescribedAt.DeepCopy()
	if s.Limits != nil {
		limits := *s.Limits
		limits.V4Block, limits.V6Block = pointed(limits.V4Block), pointed(limits.V6Block)
		s.Limits = &limits
	}
	s.ENIs = slices.Clone(s.ENIs)
	for i, e := range s.ENIs {
		e.V4, e.V6, e.Created = pointed(e.V4), pointed(e.V6), e.Created.DeepCopy()
		e.Addresses = slices.Clone(e.Addresses)
		s.ENIs[i] = e
	}
	s.Releasing, s.ReclaimIn = slices.Clone(s.Releasing), slices.Clone(s.ReclaimIn)
	s.LeavingInterfaces = slices.Clone(s.LeavingInterfaces)
	s.Quarantined = slices.Clone(s.Quarantined)
	s.Reserved = slices.Clone(s.Reserved)
	s.Leaders = slices.Clone(s.Leaders)
	s.Causes = slices.Clone(s.Causes)
	for i, c := range s.Causes {
		s.Causes[i].Until = c.Until.DeepCopy()
	}
	if s.Handover != nil {
		s.Handover = &StatusHandover{Tokens: slices.Clone(s.Handover.Tokens)}
	}
	s.Conditions = slices.Clone(s.Conditions)
	return s
}

// pointed copies what holds no pointers itself.
func pointed[T Block | Family](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *NodeNetworkList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copiedAll(l.Items, (*NodeNetwork).DeepCopy)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (s *Subnet) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopy returns a copy that shares nothing with s.
func (s *Subnet) DeepCopy() *Subnet {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.NodeSelector = maps.Clone(s.Spec.NodeSelector)
	c.Spec.Reserve = slices.Clone(s.Spec.Reserve)
	for _, t := range []**metav1.Time{&c.Status.FullSince, &c.Status.RetryAt, &c.Status.DescribedAt} {
		*t = (*t).DeepCopy()
	}
	c.Status.Reserved = slices.Clone(s.Status.Reserved)
	c.Status.Conditions = slices.Clone(s.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *SubnetList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copiedAll(l.Items, (*Subnet).DeepCopy)
	return &c
}

func copiedAll[T any](list []T, deep func(*T) *T) []T {
	if list == nil {
		return nil
	}
	all := make([]T, len(list))
	for i := range list {
		all[i] = *deep(&list[i])
	}
	return all
}
