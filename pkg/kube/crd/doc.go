// Package crd has the Go types of enipool's objects in a cluster: NodeNetwork, of which there is
// one per node, and Subnet; where there are topologies PodSubnetTopology and AddressClaim too.
// conf/kubernetes/crds and conf/kubernetes/topologies have their schemas and validation; a test
// holds types and schemas together, field by field.
//
// An agent writes a NodeNetwork's spec and the operator its status, never both one field. Both
// write with the resourceVersion that they decided from.
package crd

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of all kinds here.
var GroupVersion = schema.GroupVersion{Group: "enipool.io", Version: "v1alpha1"}

// AddToScheme makes clients know the kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &NodeNetwork{}, &NodeNetworkList{}, &Subnet{}, &SubnetList{},
		&PodSubnetTopology{}, &PodSubnetTopologyList{}, &AddressClaim{}, &AddressClaimList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
