package kube

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// In one cluster thousands of pods live on other nodes, come and go; in the other as
// much is written that is no pod. What is sent to this node is the same to the byte.
func TestTrafficDependsOnThePodsOfTheNodeOnly(t *testing.T) {
	const many = 5000
	sent := map[string]int{}
	for _, what := range []string{"pods of other nodes", "no pods"} {
		synctest.Test(t, func(t *testing.T) {
			other := func(i int) client.Object {
				if what == "no pods" {
					return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("other", i)}}
				}
				return pod(fmt.Sprint("other", i), fmt.Sprint("node-", 2+i%100))
			}
			c := newCluster()
			for i := range many {
				c.put(other(i))
			}
			for i := range 20 {
				c.put(pod(fmt.Sprint("ours", i), here))
			}
			n, _ := start(t, c, Options{})
			synctest.Wait()
			for i := range many {
				c.put(other(i))
				c.remove(path(other(i + 1)))
			}
			c.put(pod("last", here))
			time.Sleep(time.Minute)
			if got := len(names(t, n)); got != 21 {
				t.Errorf("%d pods, want 21", got)
			}
			if held := n.view.pods.GetStore().ListKeys(); len(held) != 21 {
				t.Errorf("%d pods are held, want 21", len(held))
			}
			sent[what] = c.sent
		})
	}
	if sent["pods of other nodes"] != sent["no pods"] {
		t.Errorf("bytes: %v", sent)
	}
}

func TestTheCacheHoldsOnlyWhatIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := pod("a", here)
		p.Annotations = map[string]string{"long": strings.Repeat("x", 10_000)}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsType: "FieldsV1"}}
		p.Labels = map[string]string{"app": "a"}
		p.Spec.Containers = []corev1.Container{{Name: "x", Image: "y", Resources: corev1.ResourceRequirements{Requests: resourceQuantity(1)}}}
		c.put(p)
		node := newNode()
		node.Status.Images = []corev1.ContainerImage{{Names: []string{"y"}}}
		node.ManagedFields = p.ManagedFields
		c.put(node)
		n, _ := start(t, c, Options{})
		synctest.Wait()

		wantPod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-1", ResourceVersion: "2"},
			Spec:       corev1.PodSpec{NodeName: here, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resourceQuantity(1)}}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		}
		wantNode := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: here, UID: "uid-2", ResourceVersion: "3"},
			Spec:       newNode().Spec,
			Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}},
		}
		if diff := cmp.Diff([]any{wantPod}, n.view.pods.GetStore().List()); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{wantNode}, n.view.self.GetStore().List()); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
	})
}
