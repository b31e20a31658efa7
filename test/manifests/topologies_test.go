package manifests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/test/kube"
)

// gate is what a pod has that waits for its topology.
const gate = "enipool.io/topology"

// gates returns the names of a pod's gates, as one text.
func gates(p *corev1.Pod) string {
	text := ""
	for _, g := range p.Spec.SchedulingGates {
		text += " " + g.Name
	}
	return text
}

// A pod waits for its topology in the namespaces that ask for that, and nowhere else.
func TestAPodOfANamespaceWithTopologiesIsGated(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/topologies")
	ctx := context.Background()
	for name, labels := range map[string]map[string]string{
		"db": {"enipool.io/topologies": "enabled"}, "off": {"enipool.io/topologies": "disabled"}, "web": nil,
	} {
		c.addNamespace(name, labels)
	}
	try := func(namespace string, change func(*corev1.Pod)) (string, error) {
		p := podWith("p", change)
		p.Namespace = namespace
		made, err := c.admin.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return gates(made), err
	}
	c.Eventually("the policy counts", func() error {
		if got, err := try("db", nil); err != nil || got != " "+gate {
			return fmt.Errorf("a pod has the gates%s, %v", got, err)
		}
		return nil
	})
	for _, tt := range []struct {
		what, namespace, want string
		change                func(*corev1.Pod)
	}{
		{"in the network of its node", "db", "", func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
		{"with a gate of its own keeps it", "db", " example.com/quota " + gate, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		}},
		{"whose template has the gate has it once", "db", " " + gate, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		}},
		{"of a namespace that does without", "off", "", nil},
		{"of a namespace that says nothing", "web", "", nil},
		{"whose template has the gate, of a namespace that says nothing", "web", " " + gate, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		}},
	} {
		if got, err := try(tt.namespace, tt.change); got != tt.want || err != nil {
			t.Errorf("a pod %s has the gates%s, want%s; %v", tt.what, got, tt.want, err)
		}
	}
	// It would never wait, and have an address of no topology. Each policy counts in its own time.
	c.Eventually("a pod that names its node is kept out", func() error {
		if got, err := try("db", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }); err == nil {
			return fmt.Errorf("it is let in, with the gates%s", got)
		}
		return nil
	})
}

// Who makes or labels pods has no address of a topology by that; the operator says which is whose, and everything else of a pod stays people's.
func TestATopologyIsSaidByTheOperatorAlone(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/topologies")
	ctx := context.Background()
	c.Kubectl("create", "serviceaccount", "enipool-operator", "--namespace=kube-system")
	operator := c.as(strings.TrimSpace(c.Kubectl("create", "token", "enipool-operator", "--namespace=kube-system")))
	says := func(label, annotation string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if label != "" {
				p.Labels = map[string]string{gate: label}
			}
			if annotation != "" {
				p.Annotations = map[string]string{gate: annotation}
			}
		}
	}
	pods := c.admin.CoreV1().Pods("default")
	c.Eventually("the policy counts", func() error {
		_, err := pods.Create(ctx, podWith("p", says("db", "")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "written by the operator alone") {
			return fmt.Errorf("a pod with the label: %v", err)
		}
		return nil
	})
	if _, err := pods.Create(ctx, podWith("p", says("", "db")), metav1.CreateOptions{}); err == nil {
		t.Error("a pod is made with the annotation")
	}
	_, err := pods.Create(ctx, podWith("p", nil), metav1.CreateOptions{})
	c.must(err)
	for _, kind := range []string{"labels", "annotations"} {
		patch := func(value string) []byte {
			return fmt.Appendf(nil, `{"metadata": {%q: {%q: %s, "other": "x"}}}`, kind, gate, value)
		}
		if _, err := pods.Patch(ctx, "p", types.MergePatchType, patch(`"db"`), metav1.PatchOptions{}); err == nil {
			t.Errorf("the administrator adds it to the pod's %s", kind)
		}
		_, err = operator.CoreV1().Pods("default").Patch(ctx, "p", types.MergePatchType, patch(`"db"`), metav1.PatchOptions{})
		c.must(err)
		if _, err := pods.Patch(ctx, "p", types.MergePatchType, patch(`null`), metav1.PatchOptions{}); err == nil {
			t.Errorf("the administrator takes it off the pod's %s", kind)
		}
		_, err = pods.Patch(ctx, "p", types.MergePatchType, fmt.Appendf(nil, `{"metadata": {%q: {"other": "y"}}}`, kind), metav1.PatchOptions{})
		c.must(err)
	}
}

// Nothing of it is there unless people install it.
func TestTopologiesArePartOfNoOtherInstallation(t *testing.T) {
	for _, dir := range folders(t) {
		k := readKustomization(t, dir)
		for _, name := range append(k.Resources, k.Components...) {
			if name == "../topologies" || name == "../../topologies" {
				t.Errorf("%s has the topologies", dir)
			}
		}
	}
}
