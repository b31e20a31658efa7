package manifests

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/test/kube"
)

// Of nodes that are no instances of the VPC, or whose network is the cloud's own affair, none gets an agent: it would never become ready there, and a tenth
// of such nodes keeps all others from a new release.
func TestNodesOfOtherKindsGetNoAgent(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	none := map[string]string{"virtual": "type=virtual-kubelet", "fargate": "eks.amazonaws.com/compute-type=fargate", "hybrid": "eks.amazonaws.com/compute-type=hybrid",
		"auto": "eks.amazonaws.com/compute-type=auto"}
	want := []string{"managed", "plain"}
	for _, name := range want {
		c.addNode(name, nil)
	}
	c.Kubectl("label", "node", "managed", "eks.amazonaws.com/compute-type=ec2")
	for name, label := range none {
		c.addNode(name, nil)
		c.Kubectl("label", "node", name, label)
	}
	c.install(root + "/base")
	c.Eventually("the agents' pods", func() error {
		pods, err := c.admin.CoreV1().Pods("kube-system").List(context.Background(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=enipool-agent"})
		if err != nil {
			return err
		}
		var got []string
		for _, p := range pods.Items {
			for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				got = append(got, namesIn(term)...)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("agents for %v, want %v", got, want)
		}
		return nil
	})
}

// namesIn returns the nodes that a pod of a DaemonSet is for.
func namesIn(term corev1.NodeSelectorTerm) (names []string) {
	for _, f := range term.MatchFields {
		names = append(names, f.Values...)
	}
	return names
}
