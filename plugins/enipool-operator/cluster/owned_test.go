package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/operator/classify"
)

// Who needs no address of a topology, whatever is written on the pod: one that has ended, and one on its node's network, which operators of before classified
// by a gate in its template.
func TestWhichPodsNeedAnAddress(t *testing.T) {
	for _, tt := range []struct {
		what  string
		ended bool
		pod   corev1.Pod
	}{
		{"it runs", false, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
		{"it has succeeded", true, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}},
		{"it has failed", true, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}},
		{"it is on its node's network", true, corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
	} {
		tt.pod.ObjectMeta = metav1.ObjectMeta{Name: "p", Namespace: "db", Labels: map[string]string{classify.Gate: "db"}}
		if is := podOf(&tt.pod); is.Ended != tt.ended || is.Topology != "db" {
			t.Errorf("%s: %+v", tt.what, is)
		}
	}
}
