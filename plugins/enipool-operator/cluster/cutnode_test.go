package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// What agents show on their Node tells which nodes call the cloud though they have no object: nodes of another CNI have none of it. What it says changes often,
// and is not kept.
func TestANodeHasAnAgentWhereOneTellsOnIt(t *testing.T) {
	condition := func(kind, message string) corev1.NodeStatus {
		return corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}, {Type: corev1.NodeConditionType(kind), Status: "True", Message: message}}}
	}
	for name, tt := range map[string]struct {
		node corev1.Node
		want bool
	}{
		"another CNI": {corev1.Node{Status: condition("NetworkUnavailable", "")}, false},
		"condition":   {corev1.Node{Status: condition("EnipoolAddressesUnavailable", "full")}, true},
		"ready":       {corev1.Node{Status: condition("enipool.io/NetworkReady", "")}, true},
		"resource":    {corev1.Node{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"enipool.io/pod-addresses": resource.MustParse("7"), "cpu": resource.MustParse("2")}}}, true},
		"cpu alone":   {corev1.Node{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("2")}}}, false},
		"taint":       {corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "enipool.io/addresses-unavailable"}}}}, true},
	} {
		kept, err := stripNode(&tt.node)
		must(t, err)
		stripped := kept.(*corev1.Node)
		if whole, rest := nodeOf(&tt.node).Agent, nodeOf(stripped).Agent; whole != tt.want || rest != tt.want {
			t.Errorf("%s: %v, and %v of what is kept", name, whole, rest)
		}
		for _, c := range stripped.Status.Conditions {
			if c.Message != "" || c.Type == corev1.NodeReady {
				t.Errorf("%s keeps %+v", name, c)
			}
		}
	}
}
