package kube

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/eni"
)

// libraries is what the Kubernetes libraries logged: they have one log for all tests.
var libraries journal

func TestMain(m *testing.M) {
	TakeLogs(slog.New(slog.NewTextHandler(&libraries, &slog.HandlerOptions{Level: slog.Level(-20)})))
	os.Exit(m.Run())
}

// journal is a log that several goroutines write and a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// lines returns what a person sees: messages from a level on.
func logger(to *journal, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// startOnNode returns a cluster that has the node, and a Node that runs in it.
func startOnNode(t *testing.T, o Options) (c *cluster, n *Node) {
	t.Helper()
	c = newCluster()
	c.put(newNode())
	n, _ = start(t, c, o)
	return c, n
}

// start runs a Node of a cluster until the test ends or stop is called.
func start(t *testing.T, c *cluster, o Options) (n *Node, stop func()) {
	t.Helper()
	o.Node, o.Config = here, c.config()
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return n, stop
}

// names returns the names of the pods that are known.
func names(t *testing.T, n *Node) []string {
	t.Helper()
	list, known := n.Pods()
	if !known {
		return []string{"not known"}
	}
	names := []string{}
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names
}

// expect waits until nothing moves any more and compares the pods.
func expect(t *testing.T, n *Node, want ...string) {
	t.Helper()
	synctest.Wait()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, names(t, n)); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// woken reports whether the agent was told of a change since it asked last.
func woken(n *Node) bool {
	synctest.Wait()
	select {
	case <-n.Changed():
		return true
	default:
		return false
	}
}

func TestPodsThatNeedAnAddress(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	for _, tt := range []struct {
		name   string
		change func(*corev1.Pod)
		want   need
	}{
		{"scheduled to this node", func(*corev1.Pod) {}, need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 0, false, netip.Addr{}, ""}},
		{"running", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 0, false, netip.Addr{}, ""}},
		{"with a node that does not answer", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 0, false, netip.Addr{}, ""}},
		{"being deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }, need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 0, true, netip.Addr{}, ""}},
		{"that succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, need{}},
		{"that failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, need{}},
		{"in the host's network", func(p *corev1.Pod) { p.Spec.HostNetwork = true }, need{}},
		{"of another node", func(p *corev1.Pod) { p.Spec.NodeName = "other" }, need{}},
		{"without a node", func(p *corev1.Pod) { p.Spec.NodeName = "" }, need{}},
		{"static, by the uid that the kubelet gave it", func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash", "x": "y"}
		}, need{eni.Pod{UID: "hash", Namespace: "ns", Name: "p"}, 0, false, netip.Addr{}, ""}},
		{"with an address", func(p *corev1.Pod) { p.Status.PodIP = "10.244.0.7" },
			need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 0, false, netip.MustParseAddr("10.244.0.7"), ""}},
		{"that asks the scheduler", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resourceQuantity(1)}}, {}}
		}, need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 1, false, netip.Addr{}, ""}},
		{"of a topology", func(p *corev1.Pod) { p.Annotations = map[string]string{eni.TopologyAnnotation: "db", "x": "y"} },
			need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 0, false, netip.Addr{}, "db"}},
		{"that asks by an init container", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{}, {Resources: corev1.ResourceRequirements{Requests: resourceQuantity(2)}}}
		}, need{eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, 2, false, netip.Addr{}, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: here}}
			tt.change(p)
			if got := needOf(p, here); got != tt.want {
				t.Errorf("needOf = %+v, want %+v", got, tt.want)
			}
			stripped, err := stripPod(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := needOf(stripped.(*corev1.Pod), here); got != tt.want {
				t.Errorf("stripped: needOf = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAPodCountsTheMomentItIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, _ := start(t, c, Options{})
		if !woken(n) {
			t.Error("that there are no pods is no news")
		}
		expect(t, n)
		p := c.put(pod("a", "")).(*corev1.Pod)
		if woken(n) {
			t.Error("a pod without a node is news")
		}
		began := time.Now()
		p = p.DeepCopy()
		p.Spec.NodeName = here
		p = c.put(p).(*corev1.Pod).DeepCopy()
		if !woken(n) || time.Since(began) != 0 {
			t.Errorf("a bound pod is no news after %s", time.Since(began))
		}
		expect(t, n, "a")
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.244.0.7"
		p = c.put(p).(*corev1.Pod).DeepCopy()
		if woken(n) {
			t.Error("a status is news")
		}
		if got := n.PodIPs()[eni.Pod{UID: string(p.UID), Namespace: p.Namespace, Name: p.Name}]; got.String() != p.Status.PodIP {
			t.Errorf("the pod has %s, want %s", got, p.Status.PodIP)
		}
		p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		p = c.put(p).(*corev1.Pod).DeepCopy()
		if !woken(n) {
			t.Error("a pod that is being deleted is no news")
		}
		expect(t, n) // the record of its address counts, and nothing else
		c.remove(path(p))
		expect(t, n)
	})
}

func TestAFinishedPodIsGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(pod("a", here))
		job := c.put(pod("job", here)).(*corev1.Pod).DeepCopy()
		n, _ := start(t, c, Options{})
		expect(t, n, "a", "job")
		job.Status.Phase = corev1.PodSucceeded
		c.put(job)
		expect(t, n, "a")
		failed := pod("failed", here)
		failed.Status.Phase = corev1.PodFailed
		c.put(failed)
		expect(t, n, "a")
		if held := n.view.pods.GetStore().ListKeys(); len(held) != 1 {
			t.Errorf("%q are held, want 1 pod: the server leaves the others out", held)
		}
	})
}

func TestAPodCreatedAgainUnderItsNameIsAnotherOne(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			c.put(pod("db-0", here))
			n, _ := start(t, c, Options{})
			expect(t, n, "db-0")
			if lost { // both events fall into a gap, and a list follows
				c.do(func() { c.down = refusedError(); c.cut() })
			}
			c.remove("pods/default/db-0")
			c.put(pod("db-0", here))
			c.do(func() { c.down = nil; c.floor = len(c.history) })
			time.Sleep(5 * time.Minute)
			expect(t, n, "db-0")
			if list, _ := n.Pods(); list[0].UID != "uid-2" {
				t.Errorf("uid %s, want uid-2", list[0].UID)
			}
			if !woken(n) {
				t.Error("another pod is no news")
			}
		})
	}
}

func TestMaxPodsIsWhatTheNodeAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, _ := start(t, c, Options{})
		expect := func(news bool, most int, known bool) {
			t.Helper()
			if woken(n) != news {
				t.Errorf("news: %t, want %t", !news, news)
			}
			if got, is := n.MaxPods(); got != most || is != known {
				t.Errorf("MaxPods = %d, %t, want %d, %t", got, is, most, known)
			}
		}
		expect(true, 0, false)
		node := c.put(newNode()).(*corev1.Node).DeepCopy()
		expect(true, 110, true)
		node.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
		node = c.put(node).(*corev1.Node).DeepCopy()
		expect(false, 110, true)
		node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("60")
		c.put(node)
		expect(true, 60, true)
		c.remove("nodes/" + here)
		expect(false, 60, true)
	})
}

// newNode is a node as a kubelet and a controller leave it.
func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: here, Labels: map[string]string{"kubernetes.io/hostname": here}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("4")},
			Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("4")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
}

// A pod that is being deleted has its address by the record of it, which its DEL ends before
// the pod is gone from the cluster: told to the agent it would order another address.
func TestDeletionsAskForNoAddresses(t *testing.T) {
	for _, count := range []int{1, 36, 250} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			n, _ := start(t, c, Options{})
			var pods []*corev1.Pod
			for i := range count {
				pods = append(pods, c.put(pod(fmt.Sprint("p", i), here)).(*corev1.Pod).DeepCopy())
			}
			left := func() int {
				synctest.Wait()
				list, _ := n.Pods()
				return len(list)
			}
			if got := left(); got != count {
				t.Fatalf("%d pods, want %d", got, count)
			}
			for i, p := range pods {
				p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
				pods[i] = c.put(p).(*corev1.Pod)
				if got := left(); got != count-i-1 {
					t.Fatalf("%d pods when %d of %d are being deleted", got, i+1, count)
				}
			}
			if got := len(n.Ending()); got != count {
				t.Errorf("%d pods that are being deleted, want %d", got, count)
			}
			if l, _ := n.view.currentLoad(); l.silent != count {
				t.Errorf("%d pods that the scheduler counts, want %d until they are gone", l.silent, count)
			}
			for _, p := range pods {
				c.remove(path(p))
			}
			synctest.Wait()
			if l, _ := n.view.currentLoad(); len(l.pods)+len(l.ending) != 0 || l.silent != 0 {
				t.Errorf("%+v when all are gone", l)
			}
		})
	}
}
