package kube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func (c *control) finishes(t *testing.T) {
	c.newNode(t, "finishes")
	n := runReal(t, c.rest, "finishes", nil)
	job := c.runPod(t, "job", "finishes", nil)
	c.runPod(t, "host", "finishes", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	stays := c.runPod(t, "stays", "finishes", func(p *corev1.Pod) { p.Finalizers = []string{"enipool.io/test"} })
	c.runPod(t, "nowhere", "", nil)
	count := func(want int) func() bool {
		return func() bool { list, known := n.Pods(); return known && len(list) == want }
	}
	await(t, "two pods", count(2))
	job.Status.Phase = corev1.PodFailed
	c.do(t, c.admin.Status().Update(t.Context(), job))
	await(t, "the job to go", count(1))
	c.do(t, c.admin.Delete(t.Context(), stays, client.GracePeriodSeconds(0)))
	await(t, "the one that is being deleted to count no more", count(0))
	c.do(t, c.admin.Patch(t.Context(), stays, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	c.runPod(t, "marker", "finishes", nil) // what came before it has arrived when it has
	await(t, "the marker alone", count(1))
}

// others counts the bytes that come in while many pods of other nodes come, change
// and go.
func (c *control) others(t *testing.T) {
	const (
		many  = 200
		least = 100 // bytes of a pod that comes in: its name, namespace and node's name alone are a third of it
	)
	c.newNode(t, "others")
	var bytes atomic.Int64
	config := rest.CopyConfig(c.rest)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return counting{conn, &bytes}, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Has("sendInitialEvents") {
				t.Errorf("%s makes the API server go through what all nodes have", req.URL)
			}
			return next.RoundTrip(req)
		})
	})
	n := runReal(t, config, "others", nil)
	c.runPod(t, "ours", "others", nil)
	await(t, "our pod", func() bool { list, _ := n.Pods(); return len(list) == 1 })
	one := bytes.Load()
	for i := range many {
		p := c.runPod(t, fmt.Sprint("other-", i), "elsewhere", nil)
		p.Status.Phase = corev1.PodRunning
		c.do(t, c.admin.Status().Update(t.Context(), p))
		if i%2 == 0 {
			c.do(t, c.admin.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
		}
	}
	c.runPod(t, "second", "others", nil)
	await(t, "our second pod", func() bool { list, _ := n.Pods(); return len(list) == 2 })
	if more := bytes.Load() - one; more > one+many*least {
		t.Errorf("%d bytes for one pod here and %d elsewhere, after %d for the first", more, many, one)
	}
	late := rest.CopyConfig(config)
	bytes.Store(0)
	n = runReal(t, late, "others", nil)
	await(t, "both at once", func() bool { list, _ := n.Pods(); return len(list) == 2 })
	if all := bytes.Load(); all > one+many/2*least { // a handshake may be whole or taken up again
		t.Errorf("%d bytes to begin with %d pods elsewhere, %d without", all, many/2, one)
	}
}

type counting struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// writers lets another writer change taints and conditions of the node all the time.
func (c *control) writers(t *testing.T) {
	c.newNode(t, "writers")
	n := runReal(t, c.rest, "writers", nil)
	for i := range 20 {
		node := c.node(t, "writers")
		cordon := corev1.Taint{Key: fmt.Sprint("example.com/", i), Effect: corev1.TaintEffectNoSchedule}
		if i%2 == 0 {
			n.Report(faulty(i))
			node.Spec.Taints = append([]corev1.Taint{cordon}, node.Spec.Taints...)
		} else {
			n.Report(fit(i))
			node.Spec.Taints = append(node.Spec.Taints, cordon)
		}
		for c.admin.Update(t.Context(), node) != nil { // it loses some races itself
			fresh := c.node(t, "writers")
			fresh.Spec.Taints = append(fresh.Spec.Taints, cordon)
			node = fresh
		}
	}
	n.Report(faulty(20))
	await(t, "all taints and the condition", func() bool {
		node := c.node(t, "writers")
		return len(node.Spec.Taints) == 21 && conditionOf(node).Status == corev1.ConditionTrue
	})
	n.Report(fit(20))
	await(t, "the taints of the others alone", func() bool {
		node := c.node(t, "writers")
		return len(node.Spec.Taints) == 20 && conditionOf(node).Status == corev1.ConditionFalse
	})
	node := c.node(t, "writers")
	if len(node.Status.Conditions) != 2 || node.Status.Capacity.Cpu().Value() != 4 || node.Status.Allocatable.Pods().Value() != 110 {
		t.Errorf("node:\n%s", dump(node))
	}
}

// scheduler lets the real scheduler place pods that ask for an address.
func (c *control) scheduler(t *testing.T) {
	c.newNode(t, "small")
	stop := c.startScheduler(t)
	defer stop()
	c.runPod(t, "older-than-enipool", "small", nil)
	n := runReal(t, c.rest, "small", nil)
	n.Report(fit(4))
	for i := range 6 {
		c.runPod(t, fmt.Sprint("asks-", i), "", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = resourceQuantity(1)
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "small"}
			p.Labels = map[string]string{"asks": "yes"}
		})
	}
	placed := func() (bound, refused int) {
		var list corev1.PodList
		c.do(t, c.admin.List(t.Context(), &list, client.MatchingLabels{"asks": "yes"}))
		for _, p := range list.Items {
			switch {
			case p.Spec.NodeName == "small":
				bound++
			case len(p.Status.Conditions) > 0 && strings.Contains(p.Status.Conditions[0].Message, "Insufficient "+string(Resource)):
				refused++
			}
		}
		return bound, refused
	}
	places := func(bound, refused int) func() bool {
		return func() bool { b, r := placed(); return b == bound && r == refused }
	}
	defer func() {
		if t.Failed() {
			bound, refused := placed()
			t.Logf("%d are bound, %d refused; the node:\n%s", bound, refused, dump(c.node(t, "small")))
		}
	}()
	await(t, "three pods beside the one that did not ask", places(3, 3))
	n.Report(fit(5))
	await(t, "one pod more", places(4, 2))
	n.Report(fit(2))
	await(t, "a number that lets running pods be", func() bool {
		q := c.node(t, "small").Status.Allocatable[Resource]
		return q.Value() == 4
	})
	r := faulty(50)
	n.Report(r)
	await(t, "the taint", func() bool { return len(c.node(t, "small").Spec.Taints) == 1 })
	zero := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"capacity":{"enipool.io/pod-addresses":"0"},"allocatable":{"enipool.io/pod-addresses":"0"}}}`))
	c.do(t, c.admin.Status().Patch(t.Context(), c.node(t, "small"), zero))
	await(t, "the capacity again", func() bool {
		q := c.node(t, "small").Status.Allocatable[Resource]
		return q.Value() == 49
	})
	if bound, _ := placed(); bound != 4 {
		t.Errorf("%d pods on the node, want those from before the taint", bound)
	}
	n.Report(fit(50))
	await(t, "all pods", places(6, 0))
}

func (c *control) startScheduler(t *testing.T) (stop func()) {
	t.Helper()
	user, err := c.env.AddUser(envtest.User{Name: "scheduler", Groups: []string{"system:masters"}}, nil)
	c.do(t, err)
	text, err := user.KubeConfig()
	c.do(t, err)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	c.do(t, os.WriteFile(config, text, 0o600))
	cmd := exec.Command(filepath.Join(assets(t), "kube-scheduler"), "--kubeconfig", config, "--leader-elect=false", "--secure-port=0")
	c.do(t, cmd.Start())
	return func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
}
