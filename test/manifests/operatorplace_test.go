package manifests

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/test/kube"
)

// forEver tells whether a pod stays on a node with a taint, however long it is there.
func forEver(list []corev1.Toleration, taint corev1.Taint) bool {
	for _, t := range list {
		fits := (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == taint.Key || t.Key == "" && t.Operator == corev1.TolerationOpExists) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
		if fits && t.TolerationSeconds == nil {
			return true
		}
	}
	return false
}

// A fresh node has taints that an operator has to live with. One that has died or is to go has others: there another operator is needed, elsewhere.
func TestAnOperatorLeavesANodeThatIsGone(t *testing.T) {
	spec := named[*appsv1.Deployment](t, "enipool-operator").Spec.Template.Spec
	for _, fresh := range []corev1.Taint{
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}, {Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule},
	} {
		if !forEver(spec.Tolerations, fresh) {
			t.Errorf("it does not come on a fresh node: %s", fresh.ToString())
		}
	}
	for _, gone := range []corev1.Taint{
		{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}, {Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute},
		{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}, {Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule},
		{Key: "ToBeDeletedByClusterAutoscaler", Value: "1", Effect: corev1.TaintEffectNoSchedule},
	} {
		if forEver(spec.Tolerations, gone) {
			t.Errorf("it stays, or comes: %s", gone.ToString())
		}
	}
}

// A node is cordoned, as each drain begins: its operator is not put there again.
func TestNoOperatorIsPutOnACordonedNode(t *testing.T) {
	c := start(t, kube.Options{Scheduler: true, ControllerManager: true})
	c.install(root + "/crds")
	c.install(root + "/operator")
	for _, name := range []string{"n1", "n2"} {
		c.addNode(name, nil)
	}
	c.Kubectl("cordon", "n2")
	list := func() []corev1.Pod {
		pods, err := c.admin.CoreV1().Pods("kube-system").List(context.Background(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=enipool-operator"})
		c.must(err)
		return pods.Items
	}
	c.Eventually("an operator on n1", func() error {
		for _, p := range list() {
			if p.Spec.NodeName == "n1" {
				return nil
			}
		}
		return fmt.Errorf("%d pods", len(list()))
	})
	time.Sleep(5 * time.Second)
	for _, p := range list() {
		if p.Spec.NodeName == "n2" {
			t.Errorf("%s is on n2, which is cordoned", p.Name)
		}
	}
}
