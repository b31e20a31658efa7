package manifests

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		c.must(err)
		c.Eventually("the account of "+name, func() error {
			_, err := c.admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			if err != nil {
				_, err = c.admin.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
			}
			return err
		})
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
		{"that has a node", "db", "", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }},
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
