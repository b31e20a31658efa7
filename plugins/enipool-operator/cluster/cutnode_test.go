package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Of a Node's taints the operator keeps whether the cluster reaches it. A fresh node, a full one and one that is drained are reached.
func TestANodeThatTheClusterDoesNotReachIsCut(t *testing.T) {
	for key, want := range map[string]bool{corev1.TaintNodeUnreachable: true, corev1.TaintNodeOutOfService: true, corev1.TaintNodeNotReady: false,
		corev1.TaintNodeUnschedulable: false, "enipool.io/addresses-unavailable": false} {
		stripped, err := stripNode(&corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "of-people"}, {Key: key}}}})
		must(t, err)
		if got := nodeOf(stripped.(*corev1.Node)); got.Cut != want {
			t.Errorf("%s: %+v", key, got)
		}
	}
}
