package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/devices"
)

func TestWhatAPodHasReserved(t *testing.T) {
	name := "made"
	for _, tt := range []struct {
		name   string
		change func(*corev1.Pod)
		want   devices.Pod
	}{
		{"nothing", func(*corev1.Pod) {}, devices.Pod{Namespace: "ns"}},
		{"in the host's network", func(p *corev1.Pod) { p.Spec.HostNetwork = true }, devices.Pod{}},
		{"by the resource", func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "x", RequestMappings: []corev1.ContainerExtendedResourceRequest{
				{ContainerName: "c", ResourceName: "gpu.example.com/gpu", RequestName: "r0"}, {ContainerName: "c", ResourceName: string(Resource), RequestName: "r1"}}}
		}, devices.Pod{Namespace: "ns", Extended: 1}},
		{"by a claim that is there, while it starts", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made", Changing: true}},
		{"by a claim of who knows whom, while its image is pulled", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.PodIP = corev1.PodPending, "10.0.0.7"
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made"}},
		{"by a claim that is there, while it ends", func(p *corev1.Pod) {
			p.Status.Phase, p.DeletionTimestamp = corev1.PodRunning, &metav1.Time{}
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made", Changing: true}},
		{"by no claim that is not prepared though its sandbox is there, as while its init containers run", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.PodIP = corev1.PodPending, "10.0.0.7"
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made"}},
		{"by one of a template", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a"}}
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: here}}
			tt.change(p)
			stripped, err := stripPod(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := reservationOf(p, here); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if got := reservationOf(stripped.(*corev1.Pod), here); got != tt.want {
				t.Errorf("stripped: %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A pod that has claims of another driver alone and whose image never comes has an address that it reserved nowhere.
func TestAPodWithAnAddressHasItsClaimsPrepared(t *testing.T) {
	gpu := "gpu"
	pod := func(addr string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "ns", Name: "p"},
			Spec:   corev1.PodSpec{NodeName: here, ResourceClaims: []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &gpu}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, PodIP: addr}}
	}
	for addr, want := range map[string]int{"": 0, "10.0.0.7": 1} {
		if _, silent := devices.Share(reservations([]any{pod(addr)}, here), nil); silent != want {
			t.Errorf("with the address %q %d pods reserved nothing, want %d", addr, silent, want)
		}
	}
}
