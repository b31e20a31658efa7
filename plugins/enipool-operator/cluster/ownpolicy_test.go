package cluster

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/enipool/enipool/pkg/operator/classify"
)

// apply makes the objects of a file of conf/kubernetes/topologies.
func (g *gates) apply(file string) {
	g.Helper()
	text, err := os.ReadFile("../../../conf/kubernetes/topologies/" + file)
	must(g.T, err)
	for _, doc := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		must(g.T, yaml.Unmarshal([]byte(doc), &object.Object))
		must(g.T, g.Create(g.Context(), object))
	}
}

// as returns a client of somebody else.
func (g *gates) as(name string, groups ...string) *kubernetes.Clientset {
	g.Helper()
	config := rest.CopyConfig(g.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	set, err := kubernetes.NewForConfig(config)
	must(g.T, err)
	return set
}

// mayAll gives subjects all rights of pods, so that nothing but the policies is in their way.
func (g *gates) mayAll(subjects ...string) {
	g.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Verbs: []string{"*"},
		Resources: []string{"pods", "pods/status", "pods/ephemeralcontainers", "pods/resize", "pods/binding", "bindings"}}}}
	set, err := kubernetes.NewForConfig(g.config)
	must(g.T, err)
	_, err = set.RbacV1().ClusterRoles().Create(g.Context(), role, metav1.CreateOptions{})
	must(g.T, err)
	for _, name := range subjects {
		_, err = set.RbacV1().ClusterRoleBindings().Create(g.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pods-" + strings.ReplaceAll(name, ":", "-")},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pods"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}, metav1.CreateOptions{})
		must(g.T, err)
	}
}

const (
	realOperator  = "system:serviceaccount:kube-system:enipool-operator"
	falseOperator = "system:serviceaccount:db:enipool-operator"
	someone       = "someone"
	kubelet       = "system:node:n1"
)

// newPolicies is newGates with all policies, and people with all rights of pods.
func newPolicies(t *testing.T) *gates {
	g := newGates(t)
	g.operator = realOperator
	for _, file := range []string{"own-topology.yaml", "account.yaml", "../operator/account.yaml"} {
		g.apply(file)
	}
	g.mayAll(someone, falseOperator, kubelet)
	must(t, g.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}))
	soon(t, "the policies count", func() error {
		for _, p := range []*corev1.Pod{pod("web", "try", topologyOn("label")), pod("db", "try", func(p *corev1.Pod) { p.Spec.NodeName = "n1" })} {
			if err := g.Create(t.Context(), p, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "enipool.io/topology") {
				return errors.New("not yet")
			}
		}
		_, err := g.as(someone).CoreV1().Pods("web").Create(t.Context(), pod("web", "try", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	return g
}

// topologyOn names a topology on a pod, as its label or annotation.
func topologyOn(what string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if what == "label" {
			p.Labels = map[string]string{classify.Gate: "db"}
		} else {
			p.Annotations = map[string]string{classify.Gate: "db"}
		}
	}
}

// attempt is what somebody does to a pod, or the making of one.
type attempt struct {
	what, by string
	do       func(ctx context.Context, set *kubernetes.Clientset) error
	allowed  bool
}

const forMerge, forJSON = types.MergePatchType, types.JSONPatchType

// patch patches a pod or a subresource of it, as a dry run: the next attempt finds it as it was.
func patch(namespace, name string, kind types.PatchType, text string, sub ...string) func(context.Context, *kubernetes.Clientset) error {
	return func(ctx context.Context, set *kubernetes.Clientset) error {
		_, err := set.CoreV1().Pods(namespace).Patch(ctx, name, kind, []byte(text), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, sub...)
		return err
	}
}

func create(p *corev1.Pod) func(context.Context, *kubernetes.Clientset) error {
	return func(ctx context.Context, set *kubernetes.Clientset) error {
		_, err := set.CoreV1().Pods(p.Namespace).Create(ctx, p.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// bind binds a pod to a node, with an annotation that goes to the pod.
func bind(namespace, name string, annotations map[string]string) func(context.Context, *kubernetes.Clientset) error {
	return func(ctx context.Context, set *kubernetes.Clientset) error {
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
		return set.CoreV1().Pods(namespace).Bind(ctx, b, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

// A pod's address, and so its place in a firewall, follows from what is written on it and from its gate. Nobody but the operator gets past them, by whichever way the
// API server has to a pod.
func TestNobodyButTheOperatorSaysWhichTopologyAPodHas(t *testing.T) {
	g := newPolicies(t)
	must(t, g.Create(t.Context(), pod("db", "gated", nil)))
	must(t, g.Create(t.Context(), pod("web", "plain", nil)))
	const label, note = `{"metadata": {"labels": {"enipool.io/topology": "db"}}}`, `{"metadata": {"annotations": {"enipool.io/topology": "db"}}}`
	const ungate, other = `[{"op": "remove", "path": "/spec/schedulingGates"}]`, `{"metadata": {"labels": {"a": "b"}}}`
	const debug = `{"metadata": {"annotations": {"enipool.io/topology": "db"}}, "spec": {"ephemeralContainers": [{"name": "d", "image": "none:1"}]}}`
	named := pod("web", "", topologyOn("annotation"))
	named.GenerateName = "p-"
	onNode := pod("db", "on-node", func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	mirror := pod("db", "mirror", func(p *corev1.Pod) {
		p.Spec.NodeName, p.Annotations = "n1", map[string]string{corev1.MirrorPodAnnotationKey: "1"}
	})
	hostNetwork := pod("db", "host", func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.NodeName = true, "n1" })
	for _, tt := range []attempt{
		{"make one with the label", someone, create(pod("web", "p", topologyOn("label"))), false},
		{"make one with the annotation and no name of its own", someone, create(named), false},
		{"make one with the annotation and a node", someone, create(pod("web", "p", func(p *corev1.Pod) { topologyOn("annotation")(p); p.Spec.NodeName = "n1" })), false},
		{"label one", someone, patch("web", "plain", forMerge, label), false},
		{"annotate one", someone, patch("db", "gated", forMerge, note), false},
		{"annotate one by its status", someone, patch("web", "plain", forMerge, note, "status"), false},
		{"label one by its status", kubelet, patch("web", "plain", forMerge, label, "status"), false},
		{"annotate one by a binding", someone, bind("web", "plain", map[string]string{classify.Gate: "db"}), false},
		{"bind one that waits", someone, bind("db", "gated", nil), false},
		{"take the gate off", someone, patch("db", "gated", forJSON, ungate), false},
		{"take the gate off with the name of the operator's account", falseOperator, patch("db", "gated", forJSON, ungate), false},
		{"label one with that name", falseOperator, patch("web", "plain", forMerge, label), false},
		{"make one with a node where pods wait", someone, create(onNode), false},

		{"make one", someone, create(pod("web", "p", nil)), true},
		{"make one that waits", someone, create(pod("db", "p", nil)), true},
		{"make one on the host's network", someone, create(hostNetwork), true},
		{"a kubelet makes the mirror of a static one", kubelet, create(mirror), true},
		{"label one otherwise", someone, patch("db", "gated", forMerge, other), true},
		{"tell its status", kubelet, patch("web", "plain", forMerge, `{"status": {"message": "fine"}}`, "status"), true},
		{"bind one that waits for nothing", someone, bind("web", "plain", nil), true},
		{"the operator labels one", realOperator, patch("web", "plain", forMerge, label), true},
		{"the operator takes the gate off", realOperator, patch("db", "gated", forJSON, ungate), true},
	} {
		var groups []string
		if tt.by == kubelet {
			groups = []string{"system:nodes"}
		}
		if err := tt.do(t.Context(), g.as(tt.by, groups...)); (err == nil) != tt.allowed {
			t.Errorf("%s (%s): %v, want it allowed: %t", tt.what, tt.by, err, tt.allowed)
		}
	}
	// What comes with a container for debugging is refused, or not taken in: the pod has no topology after it.
	set := g.as(someone)
	_, err := set.CoreV1().Pods("web").Patch(t.Context(), "plain", forMerge, []byte(debug), metav1.PatchOptions{}, "ephemeralcontainers")
	p, wrong := set.CoreV1().Pods("web").Get(t.Context(), "plain", metav1.GetOptions{})
	must(t, wrong)
	if p.Annotations[classify.Gate] != "" {
		t.Errorf("by a container for debugging it has the annotation (%v)", err)
	}
}

// A namespace whose label goes has pods that wait: they are classified all the same.
func TestAGatedPodIsClassifiedThoughItsNamespaceIsNoMore(t *testing.T) {
	g := newPolicies(t)
	g.subnet("s-a", "zone-a", "Ready")
	must(t, g.Create(t.Context(), pod("db", "waits", nil)))
	in := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	must(t, g.Patch(t.Context(), in, client.RawPatch(forMerge, []byte(`{"metadata": {"labels": {"enipool.io/topologies": null}}}`))))
	g.run()
	if p, of := g.classified("db", "waits"); of != "" || zonesOf(p) != "" {
		t.Errorf("topology %q, zones %q", of, zonesOf(p))
	}
}
