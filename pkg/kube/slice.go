package kube

import (
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/devices"
	"github.com/enipool/enipool/pkg/digest"
)

// What of a node's devices is known by name.
const (
	// Driver is the driver of the devices, and the domain of their attributes.
	Driver = "enipool.io"
	// addresses is the capacity of a device that claims reserve.
	addresses resourcev1.QualifiedName = "addresses"
	// eniAttribute is the ID of the ENI behind a device.
	eniAttribute resourcev1.QualifiedName = "eni"
)

// longestName is how long a name in the API may be.
const longestName = 253

// sliceName returns the name of a node's ResourceSlice. It is always the same, so that an agent that was killed leaves no second one.
func sliceName(node string) string {
	const suffix = "-" + Driver
	if len(node)+len(suffix) <= longestName {
		return node + suffix
	}
	sum := digest.Sum256(node)
	mark := "-" + hex.EncodeToString(sum[:8])
	return node[:longestName-len(mark)-len(suffix)] + mark + suffix
}

// sliceOf returns the ResourceSlice that shows the devices. It belongs to the Node and goes with it.
func sliceOf(node *corev1.Node, list []devices.Device) *resourcev1.ResourceSlice {
	name, shared := node.Name, true
	one := *resource.NewQuantity(1, resource.DecimalSI)
	s := &resourcev1.ResourceSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceSlice"},
		ObjectMeta: metav1.ObjectMeta{Name: sliceName(name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}},
		Spec: resourcev1.ResourceSliceSpec{Driver: Driver, NodeName: &name,
			Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}},
	}
	for _, d := range list {
		is := resourcev1.Device{Name: d.Name, AllowMultipleAllocations: &shared,
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{addresses: {
				Value: *resource.NewQuantity(int64(d.Addresses), resource.DecimalSI),
				// A pod takes one, never two and never a half. A range would not do for a device of one address.
				RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &one, ValidValues: []resource.Quantity{one}}}}}
		if d.ENI != "" {
			is.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{eniAttribute: {StringValue: &d.ENI}}
		}
		s.Spec.Devices = append(s.Spec.Devices, is)
	}
	return s
}

// nextSlice returns what a slice is to be replaced with so that it says what is wanted, nil if it does. The generation of the
// pool tells the scheduler that something changed.
func nextSlice(have, want *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	next := have.DeepCopy()
	next.OwnerReferences, next.Spec = want.OwnerReferences, want.Spec
	next.Spec.Pool.Generation = have.Spec.Pool.Generation
	if equality.Semantic.DeepEqual(have.Spec, next.Spec) && equality.Semantic.DeepEqual(have.OwnerReferences, next.OwnerReferences) {
		return nil
	}
	next.Spec.Pool.Generation++
	return next
}
