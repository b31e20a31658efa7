package manifests

import (
	"context"
	"fmt"
	"testing"

	"github.com/enipool/enipool/test/kube"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The controllers say whether budget and policies mean what they are to mean.
func TestNoAgentThatWorksIsEvicted(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	c.install(root + "/overlays/sim")
	c.addNode("n1", nil)
	ctx, pods := context.Background(), c.admin.CoreV1().Pods("kube-system")
	var agent corev1.Pod
	c.Eventually("the agent of the node", func() error {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=enipool-agent"})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("%d pods", len(list.Items))
		}
		if err == nil {
			agent = list.Items[0]
		}
		return err
	})
	c.must(pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: agent.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{}))
	ready := func(is corev1.ConditionStatus) {
		patch := `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "` + string(is) + `"}]}}`
		_, err := pods.Patch(ctx, agent.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		c.must(err)
	}
	evict := func() error {
		return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: agent.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
	}
	ready(corev1.ConditionTrue)
	c.Eventually("the budget counts the agent", func() error {
		b, err := c.admin.PolicyV1().PodDisruptionBudgets("kube-system").Get(ctx, "enipool-agent", metav1.GetOptions{})
		if err == nil && (b.Status.CurrentHealthy != 1 || b.Status.DisruptionsAllowed != 0) {
			err = fmt.Errorf("%+v", b.Status)
		}
		return err
	})
	if err := evict(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction of an agent that works: %v", err)
	}
	ready(corev1.ConditionFalse)
	if err := evict(); err != nil {
		t.Errorf("eviction of one that does not: %v", err)
	}
}

// A controller checks the types in a policy's expressions when it is written; what is
// wrong there would show only when somebody is refused.
func TestTheExpressionsOfThePolicyFitTheTypes(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	c.install(root + "/base")
	c.Eventually("the policy was looked at", func() error {
		p, err := c.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(context.Background(), "enipool-agent", metav1.GetOptions{})
		if err == nil && p.Status.TypeChecking == nil {
			return fmt.Errorf("%+v", p.Status)
		}
		if err == nil && len(p.Status.TypeChecking.ExpressionWarnings) > 0 {
			t.Fatalf("%+v", p.Status.TypeChecking.ExpressionWarnings)
		}
		return err
	})
}
