package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/enipool/enipool/pkg/eni"
	testbed "github.com/enipool/enipool/test/kube"
)

// assets returns the folder with the programs of a real control plane.
func assets(t *testing.T) string {
	t.Helper()
	testbed.Need(t)
	folder, err := testbed.Assets()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// control is a real API server with an administrator's client.
type control struct {
	env   *envtest.Environment
	admin client.Client
	rest  *rest.Config
}

func startControl(t *testing.T, gates ...string) *control {
	t.Helper()
	env := &envtest.Environment{BinaryAssetsDirectory: assets(t), ControlPlaneStartTimeout: testbed.Patience, ControlPlaneStopTimeout: testbed.Patience}
	if len(gates) > 0 {
		env.ControlPlane.GetAPIServer().Configure().Append("feature-gates", gates...)
	}
	config, err := env.Start()
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	admin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &control{env, admin, config}
}

func (c *control) do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until something is so: minutes on a machine that has other work, as the API server's start may take.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// runPod creates a pod on a node the way the scheduler does.
func (c *control) runPod(t *testing.T, name, node string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "y"}}}}
	if change != nil {
		change(p)
	}
	c.do(t, c.admin.Create(t.Context(), p))
	if node != "" {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		c.do(t, c.admin.SubResource("binding").Create(t.Context(), p, binding))
		c.do(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	}
	return p
}

func (c *control) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	var n corev1.Node
	c.do(t, c.admin.Get(t.Context(), client.ObjectKey{Name: name}, &n))
	return &n
}

// newNode makes a node as a kubelet would.
func (c *control) newNode(t *testing.T, name string) {
	t.Helper()
	n := newNode()
	n.Name, n.Spec.Taints = name, nil
	n.Labels = map[string]string{corev1.LabelHostname: name}
	c.do(t, c.admin.Create(t.Context(), n.DeepCopy()))
	fresh := c.node(t, name) // admission may have tainted it
	fresh.Spec.Taints = nil
	c.do(t, c.admin.Update(t.Context(), fresh))
	fresh.Status = n.Status
	c.do(t, c.admin.Status().Update(t.Context(), fresh))
}

// right is one thing that the agent may do.
type right struct{ resource, verb string }

// rights are all that it may do.
var rights = []right{
	{"pods", "list"}, {"pods", "watch"},
	{"nodes", "list"}, {"nodes", "watch"}, {"nodes", "patch"}, {"nodes/status", "patch"},
	{"events", "create"}, {"events", "patch"},
}

// agent returns a config of a user that has some rights and no more.
func (c *control) agent(t *testing.T, name string, may []right) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, r := range may {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{r.resource}, Verbs: []string{r.verb}})
	}
	c.do(t, c.admin.Create(t.Context(), role))
	c.do(t, c.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	user, err := c.env.AddUser(envtest.User{Name: name}, nil)
	c.do(t, err)
	return user.Config()
}

func runReal(t *testing.T, config *rest.Config, node string, log *slog.Logger) *Node {
	t.Helper()
	n, err := New(Options{Node: node, Config: config, Log: log, Taint: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return n
}

// exercise does all that an agent does, and waits for it where it has the rights.
func (c *control) exercise(t *testing.T, config *rest.Config, node string, missing right) string {
	t.Helper()
	c.newNode(t, node)
	p := c.runPod(t, "on-"+node, node, nil)
	var seen journal
	n := runReal(t, config, node, logger(&seen, slog.LevelInfo))
	refused := func() bool { return missing != right{} && strings.Contains(seen.String(), "refuses") }
	told := func(reason string, count int32) bool {
		var list corev1.EventList
		c.do(t, c.admin.List(t.Context(), &list))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Reason == reason && e.Count >= count && e.Source.Host == node
		})
	}
	await(t, "the pod", func() bool { list, _ := n.Pods(); return len(list) == 1 || refused() })
	await(t, "the node", func() bool { most, _ := n.MaxPods(); return most == 110 || refused() })
	n.Report(faulty(7))
	await(t, "a condition", func() bool { return conditionOf(c.node(t, node)).Status == corev1.ConditionTrue || refused() })
	await(t, "an event of the node", func() bool { return told("SubnetExhausted", 1) || refused() })
	for range 2 {
		n.Warn(eni.Pod{UID: string(p.UID), Namespace: p.Namespace, Name: p.Name}, "NoAddress", "x")
	}
	await(t, "an event of the pod, twice", func() bool { return told("NoAddress", 2) || refused() })
	tainted := func() bool { return len(c.node(t, node).Spec.Taints) > 0 }
	await(t, "the taint", func() bool { return tainted() || refused() })
	n.Report(fit(7))
	await(t, "the condition to go", func() bool { return conditionOf(c.node(t, node)).Status == corev1.ConditionFalse || refused() })
	await(t, "the taint to go", func() bool { return !tainted() || refused() })
	return seen.String()
}

func TestWithARealAPIServer(t *testing.T) {
	c := startControl(t)

	t.Run("its rights suffice", func(t *testing.T) {
		if log := c.exercise(t, c.agent(t, "rights", rights), "rights", right{}); log != "" {
			t.Error(log)
		}
	})
	t.Run("each of its rights is needed", func(t *testing.T) {
		for i, missing := range rights {
			name := fmt.Sprintf("without-%d", i)
			config := c.agent(t, name, slices.Delete(slices.Clone(rights), i, i+1))
			log := c.exercise(t, config, name, missing)
			method := map[string]string{"list": "GET", "watch": "GET", "patch": "PATCH", "create": "POST"}[missing.verb]
			if want := fmt.Sprintf("request=\"%s %s\"", method, missing.resource); !strings.Contains(log, want) {
				t.Errorf("without %v:\n%s", missing, log)
			}
		}
	})
	t.Run("a pod that finishes is gone at once", c.finishes)
	t.Run("pods of other nodes cost nothing", c.others)
	t.Run("what others write stays", c.writers)
	t.Run("the scheduler fills no node beyond its addresses", c.scheduler)
}

// roundTrip is a function that is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (fn roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return fn(req) }
