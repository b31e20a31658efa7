package kube

import (
	"testing"
	"testing/synctest"

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
		}, devices.Pod{Namespace: "ns", Claims: "made", Starts: true}},
		{"by a claim of who knows whom, while its image is pulled", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.PodIP = corev1.PodPending, "10.0.0.7"
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made"}},
		{"by a claim that is there, while it ends", func(p *corev1.Pod) {
			p.Status.Phase, p.DeletionTimestamp = corev1.PodRunning, &metav1.Time{}
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}
		}, devices.Pod{Namespace: "ns", Claims: "made"}},
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

// A pod that has claims of another driver alone has an address that it reserved nowhere: while its image does not come, and in all of its
// grace period.
func TestAPodWithAnAddressHasItsClaimsPrepared(t *testing.T) {
	gpu := "gpu"
	for _, tt := range []struct {
		name  string
		phase corev1.PodPhase
		addr  string
		ends  *metav1.Time
		want  int
	}{
		{"it starts", corev1.PodPending, "", nil, 0},
		{"its image is pulled", corev1.PodPending, "10.0.0.7", nil, 1},
		{"it ends", corev1.PodRunning, "10.0.0.7", &metav1.Time{}, 1},
		{"it ends before its image has come", corev1.PodPending, "10.0.0.7", &metav1.Time{}, 1},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "ns", Name: "p", DeletionTimestamp: tt.ends},
			Spec:   corev1.PodSpec{NodeName: here, ResourceClaims: []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &gpu}}},
			Status: corev1.PodStatus{Phase: tt.phase, PodIP: tt.addr}}
		if _, silent := devices.Share(reservations([]any{pod}, here), nil); silent != tt.want {
			t.Errorf("%s: %d pods reserved nothing, want %d", tt.name, silent, tt.want)
		}
	}
}

// Between the unpreparing of its claim and the end of a pod the number does not change, which would be shown for a while.
func TestAPodWhoseClaimIsUnpreparedHasItUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{})
		synctest.Wait()
		name := "address"
		claims := &kubeletClaims{changed: make(chan struct{}, 1)}
		claims.set(true, devices.Claim{UID: "1", Namespace: "ns", Name: name, Devices: []string{"eni0"}})
		n.view.claims = claims
		c.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "ns", Name: "p"},
			Spec:   corev1.PodSpec{NodeName: here, ResourceClaims: []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"}})
		for _, state := range []string{"prepared", "unprepared"} {
			synctest.Wait()
			if is, known := n.view.currentLoad(); !known || is.reserved != 1 || is.unreserved != 0 {
				t.Errorf("%s: %d reserved, %d not", state, is.reserved, is.unreserved)
			}
			claims.set(true)
			n.view.recount()
		}
	})
}
