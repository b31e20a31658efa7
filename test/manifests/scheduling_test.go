package manifests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	enipool "github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/test/kube"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podWith(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "none:1"}, {Name: "b", Image: "none:1"}}}}
	if change != nil {
		change(p)
	}
	return p
}

// asked returns how many addresses each container of a pod asks for; limits must be
// the same.
func asked(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	var list []string
	for _, c := range p.Spec.Containers {
		request, limit := c.Resources.Requests[enipool.Resource], c.Resources.Limits[enipool.Resource]
		if request.Cmp(limit) != 0 {
			t.Errorf("container %s of %s requests %s and has the limit %s", c.Name, p.Name, &request, &limit)
		}
		list = append(list, request.String())
	}
	return strings.Join(list, " ")
}

func TestAPodThatNeedsAnAddressAsksForOne(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/overlays/sim")
	try := func(p *corev1.Pod) string {
		t.Helper()
		made, err := c.admin.CoreV1().Pods("default").Create(context.Background(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		c.must(err)
		return asked(t, made)
	}
	c.Eventually("the policy counts", func() error {
		if got := try(podWith("plain", nil)); got != "1 0" {
			return fmt.Errorf("a pod asks for %s", got)
		}
		return nil
	})
	one := corev1.ResourceList{enipool.Resource: resource.MustParse("3")}
	for _, tt := range []struct {
		name, want string
		change     func(*corev1.Pod)
	}{
		{"with other requests, keeps them", "1 0", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
		}},
		{"for Linux by name", "1 0", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} }},
		{"for Windows", "0 0", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }},
		{"in the network of its node", "0 0", func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
		{"that was asked not to", "0 0", func(p *corev1.Pod) { p.Labels[string(enipool.Resource)] = "none" }},
		{"that asks by itself", "0 3", func(p *corev1.Pod) {
			p.Spec.Containers[1].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
		}},
		{"that asks by a limit", "0 3", func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Limits = one }},
		{"that a kubelet runs already", "0 0", func(p *corev1.Pod) {
			p.Annotations[corev1.MirrorPodAnnotationKey], p.Spec.NodeName = "x", "n1"
		}},
	} {
		t.Run("a pod "+tt.name, func(t *testing.T) {
			if got := try(podWith("p", tt.change)); got != tt.want {
				t.Errorf("asks for %s, want %s", got, tt.want)
			}
		})
	}
	made, err := c.admin.CoreV1().Pods("default").Create(context.Background(), podWith("kept", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
	}), metav1.CreateOptions{})
	c.must(err)
	if diff := cmp.Diff("100m", made.Spec.Containers[0].Resources.Requests.Cpu().String()); diff != "" {
		t.Error(diff)
	}
}

// Addresses are what this node has least of.
func TestTheSchedulerOverfillsNoNode(t *testing.T) {
	c := start(t, kube.Options{Scheduler: true})
	c.install(root + "/overlays/sim")
	c.addNode("n1", corev1.ResourceList{enipool.Resource: resource.MustParse("2")})
	ctx, pods := context.Background(), c.admin.CoreV1().Pods("default")
	c.Eventually("the policy counts", func() error {
		made, err := pods.Create(ctx, podWith("try", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && asked(t, made) != "1 0" {
			err = errors.New("a pod asks for nothing")
		}
		return err
	})
	for i := range 3 {
		_, err := pods.Create(ctx, podWith(fmt.Sprintf("p%d", i), nil), metav1.CreateOptions{})
		c.must(err)
	}
	_, err := pods.Create(ctx, podWith("host", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), metav1.CreateOptions{})
	c.must(err)
	c.Eventually("two of three pods have a node, and the one that needs no address", func() error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		bound, refused := 0, 0
		for _, p := range list.Items {
			if p.Spec.NodeName == "n1" {
				bound++
			}
			for _, condition := range p.Status.Conditions {
				if condition.Reason == corev1.PodReasonUnschedulable && strings.Contains(condition.Message, "Insufficient "+string(enipool.Resource)) {
					refused++
				}
			}
		}
		if bound != 3 || refused != 1 {
			return fmt.Errorf("%d pods have a node, %d were refused for lack of addresses", bound, refused)
		}
		return nil
	})
}
