package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/enipool/enipool/pkg/devices"
)

// reservationOf tells what a pod that needs an address has reserved for it, as far as the pod itself says so; nothing for others.
func reservationOf(pod *corev1.Pod, node string) devices.Pod {
	if needOf(pod, node).pod.UID == "" {
		return devices.Pod{}
	}
	is := devices.Pod{Namespace: pod.Namespace}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		for _, m := range status.RequestMappings {
			if m.ResourceName == string(Resource) {
				is.Extended++
			}
		}
	}
	var names []string
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, c := range pod.Status.ResourceClaimStatuses { // of those that are made of templates
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	is.Claims = strings.Join(names, " ")
	// A kubelet has all claims prepared before it makes the sandbox: with an address it is known what they reserve, however long the pod
	// stays pending after that.
	starts := (pod.Status.Phase == "" || pod.Status.Phase == corev1.PodPending) && pod.Status.PodIP == ""
	is.Starts = len(names) > 0 && starts
	return is
}

// reservations returns those of all pods that need one, but for pods of topologies: their addresses are kept for them, whatever the
// scheduler counts.
func reservations(list []any, node string) []devices.Pod {
	var pods []devices.Pod
	for _, object := range list {
		pod, _ := object.(*corev1.Pod)
		needed, is := needOf(pod, node), reservationOf(pod, node)
		if needed.pod.UID != "" && (needed.of == "" || is.Extended > 0) {
			pods = append(pods, is)
		}
	}
	return pods
}
