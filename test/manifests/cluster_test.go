package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// cluster is a real API server that enipool is installed on.
type cluster struct {
	*kube.Cluster
	t     *testing.T
	admin *kubernetes.Clientset
}

func start(t *testing.T, o kube.Options) *cluster {
	t.Helper()
	t.Parallel() // most of it is waiting
	c := &cluster{Cluster: kube.Start(t, o), t: t}
	c.admin = c.as(c.Config().Token)
	return c
}

// config is how the owner of a token reaches the API server.
func (c *cluster) config(token string) *rest.Config {
	return &rest.Config{Host: c.Config().Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(c.Config().CA)}, QPS: 100, Burst: 100}
}

func (c *cluster) as(token string) *kubernetes.Clientset {
	c.t.Helper()
	set, err := kubernetes.NewForConfig(c.config(token))
	c.must(err)
	return set
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// install applies a kustomization.
func (c *cluster) install(dir string) {
	c.t.Helper()
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize="+dir)
}

// addNode makes a Node that nobody runs, ready for pods. Controllers may change it at
// the same time, so it is patched.
func (c *cluster) addNode(name string, more corev1.ResourceList) {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}
	_, err := c.admin.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
	c.must(err)
	list := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	maps.Copy(list, more)
	text, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{Capacity: list, Allocatable: list,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}}})
	c.must(err)
	c.must(patchNode(c.admin, name, "status", string(text)))
	c.must(patchNode(c.admin, name, "", `{"spec": {"taints": null}}`)) // a new node has that of one that is not ready
}

// agentToken makes the pod of an agent on a node, and returns a token as the kubelet
// gets one for it: bound to the pod.
func (c *cluster) agentToken(node string) string {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + node, Namespace: "kube-system"},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "enipool-agent", HostNetwork: true, Containers: []corev1.Container{{Name: "agent", Image: "none:1"}}}}
	_, err := c.admin.CoreV1().Pods("kube-system").Create(context.Background(), pod, metav1.CreateOptions{})
	c.must(err)
	return strings.TrimSpace(c.Kubectl("create", "token", "enipool-agent", "--namespace=kube-system",
		"--bound-object-kind=Pod", "--bound-object-name="+pod.Name))
}

// build returns what a kustomization is made into.
func build(t *testing.T, dir string) string {
	t.Helper()
	kube.Need(t)
	bin, err := kube.Assets()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "kubectl"), "kustomize", dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", dir, err, &stderr)
	}
	if stderr.Len() > 0 { // like the name of a field that is no more
		t.Errorf("%s: %s", dir, &stderr)
	}
	return string(out)
}

// everything is an overlay with all components, as a person writes one.
func everything(t *testing.T, overlay string) string {
	t.Helper()
	dir, text := t.TempDir(), ""
	for _, name := range []string{"scheduling", "monitoring", "dashboard", "fast-path", "dra"} {
		if !slices.Contains(readKustomization(t, overlay).Components, "../../"+name) { // one may stand there once
			text += "- " + relative(t, dir, filepath.Join(root, name)) + "\n"
		}
	}
	writeOverlay(t, dir, overlay, text)
	return dir
}

// operatorWithPages is the operator with its component, as a person writes it.
func operatorWithPages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeOverlay(t, dir, root+"/operator", "- "+relative(t, dir, root+"/operator-monitoring")+"\n")
	return dir
}

func writeOverlay(t *testing.T, dir, overlay, components string) {
	t.Helper()
	text := fmt.Sprintf("resources: [%s]\ncomponents:\n%s", relative(t, dir, overlay), components)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	to, err := filepath.Abs(to)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
