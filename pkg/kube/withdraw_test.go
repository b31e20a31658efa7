package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// withdrawn is a node as it is before an agent came and after it was withdrawn.
var withdrawn = dump(newNode())

// ours is a node that shows all that an agent ever writes.
func ours() *corev1.Node {
	n := newNode()
	n.Spec.Taints = append([]corev1.Taint{ourTaint}, n.Spec.Taints...)
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: Condition, Status: corev1.ConditionTrue, Reason: "SubnetExhausted"},
		corev1.NodeCondition{Type: NetworkReady, Status: corev1.ConditionTrue, Reason: "PodsCanStart"})
	n.Status.Capacity[Resource], n.Status.Allocatable[Resource] = resource.MustParse("7"), resource.MustParse("7")
	return n
}

var all = []string{"condition " + string(Condition), "condition " + string(NetworkReady), "resource " + string(Resource), "taint " + Taint}

// expectWithdrawal withdraws and compares what is said and what is left.
func expectWithdrawal(t *testing.T, c *cluster, patience time.Duration, want []string, failure string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := Withdraw(ctx, Options{Node: here, Config: c.config()})
	if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != failure {
		t.Errorf("error %v, want %s; removed (-want +got):\n%s", err, failure, diff)
	}
}

func TestWhatAnAgentWroteIsWithdrawnOnceAndNothingElse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*corev1.Node)
		want   []string
	}{
		{"all of it", func(*corev1.Node) {}, all},
		{"without a fault", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] }, all[:3]},
		{"a taint that stands behind another one", func(n *corev1.Node) { n.Spec.Taints[0], n.Spec.Taints[1] = n.Spec.Taints[1], n.Spec.Taints[0] }, all},
		{"a kubelet took the resource over", func(n *corev1.Node) { delete(n.Status.Capacity, Resource) }, all},
		{"nothing known of addresses", func(n *corev1.Node) {
			delete(n.Status.Capacity, Resource)
			delete(n.Status.Allocatable, Resource)
		}, []string{all[0], all[1], all[3]}},
		{"the taint alone", func(n *corev1.Node) { n.Status = newNode().Status }, all[3:]},
		{"nothing", func(n *corev1.Node) { *n = *newNode() }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster()
			node := ours()
			tt.change(node)
			c.put(node)
			expectWithdrawal(t, c, time.Minute, tt.want, "<nil>")
			if diff := cmp.Diff(withdrawn, dump(c.theNode())); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			writes := c.calls("PATCH")
			expectWithdrawal(t, c, time.Minute, nil, "<nil>")
			if again := c.calls("PATCH"); again != writes {
				t.Errorf("%d writes when there was nothing to do", again-writes)
			}
		})
	}
}

func TestThereIsNothingToWithdrawFromANodeThatIsGone(t *testing.T) {
	expectWithdrawal(t, newCluster(), time.Minute, nil, "<nil>")
}

func TestAWithdrawalWaitsForTheAPIServerAsLongAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(ours())
		c.down = refusedError()
		began := time.Now()
		expectWithdrawal(t, c, 20*time.Second, nil, `withdraw from the cluster: Get "http://cluster/api/v1/nodes?fieldSelector=metadata.name%3D`+here+`": dial tcp: connect: connection refused`)
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %s", took)
		}
		time.AfterFunc(10*time.Second, func() { c.do(func() { c.down = nil }) })
		expectWithdrawal(t, c, 20*time.Second, all, "<nil>")
		expectNode(t, c, withdrawn)
	})
}

func TestAWithdrawalThatIsRefusedEndsAtOnceAndSaysWhatIsLeft(t *testing.T) {
	c := newCluster()
	c.put(ours())
	c.forbid = "PATCH nodes"
	expectWithdrawal(t, c, time.Minute, all[:3], `withdraw from the cluster: patch the taints of the node: nodes "x" is forbidden: no role allows it`)
	c.forbid = ""
	expectWithdrawal(t, c, time.Minute, all[3:], "<nil>")
}

func TestAWithdrawalTakesNoTaintOfOthersThatCameAtTheSameMoment(t *testing.T) {
	late := corev1.Taint{Key: "late", Effect: corev1.TaintEffectNoSchedule}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(ours())
		c.onPatch = func(at string) {
			if strings.HasSuffix(at, "/status") {
				return
			}
			c.onPatch = nil
			n := c.objects["nodes/"+here].DeepCopyObject().(*corev1.Node)
			n.Spec.Taints = slices.Insert(n.Spec.Taints, 0, late)
			c.store(path(n), n)
		}
		expectWithdrawal(t, c, time.Minute, all, "<nil>")
		want := newNode()
		want.Spec.Taints = slices.Insert(want.Spec.Taints, 0, late)
		expectNode(t, c, dump(want))
	})
}

func TestAWithdrawalNeedsANodeAndAnAPIServer(t *testing.T) {
	for want, o := range map[string]Options{"the node has no name": {Config: newCluster().config()}, "no API server is named": {Node: here}} {
		if _, err := Withdraw(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
