package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/eni"
)

// need is what one pod needs of the node; without an address to need, its pod is
// empty.
type need struct {
	pod    eni.Pod
	asked  int  // addresses it asks the scheduler for
	ending bool // it is being deleted: it gets no address any more
}

// needOf tells what a pod needs. The API server leaves out finished pods and those
// of other nodes already; a proxy that does not must not make them count.
func needOf(p *corev1.Pod, node string) need {
	if p == nil {
		return need{}
	}
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.Spec.HostNetwork || finished || p.Spec.NodeName != node {
		return need{}
	}
	return need{eni.Pod{UID: uid(p), Namespace: p.Namespace, Name: p.Name}, asks(p), p.DeletionTimestamp != nil}
}

// uid returns the uid by which the kubelet, and so the owner of an address, knows a
// pod. That of a static pod is not the uid of its mirror in the API: the mirror
// carries it as its annotation.
func uid(p *corev1.Pod) string {
	if static := p.Annotations[corev1.MirrorPodAnnotationKey]; static != "" {
		return static
	}
	return string(p.UID)
}

// asks returns how many addresses the scheduler counts for a pod.
func asks(p *corev1.Pod) int {
	sum, most := 0, 0
	for _, c := range p.Spec.Containers {
		sum += request(c)
	}
	for _, c := range p.Spec.InitContainers {
		most = max(most, request(c))
	}
	return max(sum, most)
}

func request(c corev1.Container) int {
	q := c.Resources.Requests[Resource]
	return int(q.Value())
}

// stripPod keeps of a pod what needOf reads. What it asks for becomes one container
// without a name.
func stripPod(in any) (any, error) {
	p, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, DeletionTimestamp: p.DeletionTimestamp},
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork},
		Status:     corev1.PodStatus{Phase: p.Status.Phase},
	}
	if static, ok := p.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		out.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: static}
	}
	if n := asks(p); n > 0 {
		out.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: quantity(n)}}}
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
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion},
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
		Status: corev1.NodeStatus{
			Capacity:    only(n.Status.Capacity, Resource),
			Allocatable: only(n.Status.Allocatable, Resource, corev1.ResourcePods),
		},
	}
	if c := conditionOf(n); c.Type != "" {
		out.Status.Conditions = []corev1.NodeCondition{c}
	}
	return out
}

func only(all corev1.ResourceList, names ...corev1.ResourceName) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for _, name := range names {
		if q, ok := all[name]; ok {
			kept[name] = q
		}
	}
	return kept
}

// conditionOf returns our condition of a node, an empty one if it has none.
func conditionOf(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == Condition {
			return c
		}
	}
	return corev1.NodeCondition{}
}
