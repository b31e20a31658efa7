package kube

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/eni"
)

// need is what one pod needs of the node; without an address to need, its pod is
// empty.
type need struct {
	pod    eni.Pod
	asked  int        // addresses it asks the scheduler for
	ending bool       // it is being deleted: it gets no address any more
	addr   netip.Addr // that its kubelet shows, whoever's it is
	of     string     // its topology, by which it gets what is reserved for it, and none of the others' addresses. "" for none
}

// needOf tells what a pod needs. The API server leaves out finished pods and those
// of other nodes already; a proxy that does not must not make them count.
func needOf(pod *corev1.Pod, node string) need {
	if pod == nil {
		return need{}
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.HostNetwork || finished || pod.Spec.NodeName != node {
		return need{}
	}
	addr, _ := netip.ParseAddr(pod.Status.PodIP) // "" before its sandbox is there
	return need{eni.Pod{UID: ownerUID(pod), Namespace: pod.Namespace, Name: pod.Name}, askedBy(pod), pod.DeletionTimestamp != nil, addr, pod.Annotations[eni.TopologyAnnotation]}
}

// ownerUID returns the uid by which the kubelet, and so the owner of an address, knows a
// pod. That of a static pod is not the uid of its mirror in the API: the mirror
// carries it as its annotation.
func ownerUID(pod *corev1.Pod) string {
	if static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static != "" {
		return static
	}
	return string(pod.UID)
}

// askedBy returns how many addresses the scheduler counts for a pod.
func askedBy(pod *corev1.Pod) int {
	sum, most := 0, 0
	for _, c := range pod.Spec.Containers {
		sum += requestOf(c)
	}
	for _, c := range pod.Spec.InitContainers {
		most = max(most, requestOf(c))
	}
	return max(sum, most)
}

func requestOf(c corev1.Container) int {
	q := c.Resources.Requests[Resource]
	return int(q.Value())
}

// stripPod keeps of a pod what needOf and reservationOf read. What it asks for becomes one container
// without a name.
func stripPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
	for _, key := range []string{corev1.MirrorPodAnnotationKey, eni.TopologyAnnotation} {
		if value, has := pod.Annotations[key]; has {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, key, value)
		}
	}
	out.Spec.ResourceClaims, out.Status.ResourceClaimStatuses = pod.Spec.ResourceClaims, pod.Status.ResourceClaimStatuses
	out.Status.ExtendedResourceClaimStatus = pod.Status.ExtendedResourceClaimStatus
	if n := askedBy(pod); n > 0 {
		out.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resourceQuantity(n)}}}
	}
	return out, nil
}

// stripNode keeps of a node what is ours, what we read, and all its taints.
func stripNode(in any) (any, error) {
	if n, ok := in.(*corev1.Node); ok {
		return strippedNode(n), nil
	}
	return in, nil
}

func strippedNode(n *corev1.Node) *corev1.Node {
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp},
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
		Status: corev1.NodeStatus{
			Capacity:    keepOnly(n.Status.Capacity, Resource),
			Allocatable: keepOnly(n.Status.Allocatable, Resource, corev1.ResourcePods),
		},
	}
	for _, kind := range []corev1.NodeConditionType{Condition, NetworkReady} {
		if c := findCondition(n, kind); c.Type != "" {
			out.Status.Conditions = append(out.Status.Conditions, c)
		}
	}
	return out
}

func keepOnly(all corev1.ResourceList, names ...corev1.ResourceName) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for _, name := range names {
		if q, ok := all[name]; ok {
			kept[name] = q
		}
	}
	return kept
}

// conditionOf returns the condition of a node that tells of a fault, an empty one if it has none.
func conditionOf(n *corev1.Node) corev1.NodeCondition { return findCondition(n, Condition) }

func findCondition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}
