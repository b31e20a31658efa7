package manifests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	enipool "github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/test/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	ourTaint     = `{"key": "` + enipool.Taint + `", "effect": "NoSchedule"}`
	ourCondition = `{"type": "` + string(enipool.Condition) + `", "status": "True", "reason": "Test", "message": "m"}`
	ourResource  = `{"` + string(enipool.Resource) + `": "5"}`
	otherTaint   = `{"key": "other", "effect": "NoExecute"}`
)

// patchNode changes a node, "" or "status" of it.
func patchNode(who *kubernetes.Clientset, node, sub, patch string) error {
	var subs []string
	if sub != "" {
		subs = []string{sub}
	}
	_, err := who.CoreV1().Nodes().Patch(context.Background(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subs...)
	return err
}

func TestAnAgentChangesOnlyItsOwnNodeAndThereOnlyWhatIsOurs(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/base")
	for _, name := range []string{"n1", "n2"} {
		c.addNode(name, corev1.ResourceList{enipool.Resource: resource.MustParse("1")})
		c.must(patchNode(c.admin, name, "", `{"metadata": {"labels": {"role": "x"}, "annotations": {"a": "b"}, "finalizers": ["example.com/f"]},
			"spec": {"taints": [`+otherTaint+`], "providerID": "sim:///`+name+`"}}`))
	}
	agent := c.as(c.agentToken("n1"))
	unbound := c.as(strings.TrimSpace(c.Kubectl("create", "token", "enipool-agent", "--namespace=kube-system")))
	c.Eventually("role and policy count", func() error {
		if err := patchNode(agent, "n2", "", `{"spec": {"taints": [`+otherTaint+","+ourTaint+`]}}`); err == nil || !strings.Contains(err.Error(), "the agent of node n1 changes no other one") {
			return fmt.Errorf("the other node: %v", err)
		}
		return nil
	})
	for _, tt := range []struct {
		name, sub, patch string
	}{
		{"the taint beside another one", "", `{"spec": {"taints": [` + otherTaint + "," + ourTaint + `]}}`},
		{"the taint away", "", `{"spec": {"taints": [` + otherTaint + `]}}`},
		{"the condition", "status", `{"status": {"conditions": [` + ourCondition + `]}}`},
		{"the other condition", "status", `{"status": {"conditions": [{"type": "` + string(enipool.NetworkReady) + `", "status": "True"}]}}`},
		{"the resource", "status", `{"status": {"capacity": ` + ourResource + `, "allocatable": ` + ourResource + `}}`},
		{"the resource away", "status", `{"status": {"capacity": {"` + string(enipool.Resource) + `": null}}}`},
		{"nothing", "", `{}`},
	} {
		t.Run("may change "+tt.name, func(t *testing.T) {
			if err := patchNode(agent, "n1", tt.sub, tt.patch); err != nil {
				t.Error(err)
			}
			if err := patchNode(agent, "n2", tt.sub, tt.patch); err == nil {
				t.Error("and of another node too")
			}
			if err := patchNode(unbound, "n1", tt.sub, tt.patch); err == nil || !strings.Contains(err.Error(), "the token of this agent is bound to no node") {
				t.Errorf("with a token of no node: %v", err)
			}
			c.must(patchNode(c.admin, "n2", tt.sub, tt.patch))
		})
	}
	for _, tt := range []struct {
		name, sub, patch, why string
	}{
		{"the label", "", `{"metadata": {"labels": {"role": "y"}}}`, "labels, annotations"},
		{"the label by the status", "status", `{"metadata": {"labels": {"role": "y"}}}`, "labels, annotations"},
		{"a label away", "", `{"metadata": {"labels": {"role": null}}}`, "labels, annotations"},
		{"the annotation", "", `{"metadata": {"annotations": {"a": "c"}}}`, "labels, annotations"},
		{"the finalizers", "", `{"metadata": {"finalizers": null}}`, "labels, annotations"},
		{"another's taint", "", `{"spec": {"taints": []}}`, "only the taint"},
		{"its effect to one that evicts", "", `{"spec": {"taints": [` + otherTaint + `, {"key": "` + enipool.Taint + `", "effect": "NoExecute"}]}}`, "only the taint"},
		{"whether it is cordoned", "", `{"spec": {"unschedulable": true}}`, "cordons no node"},
		{"Ready", "status", `{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}`, "only the condition"},
		{"a condition of others", "status", `{"status": {"conditions": [{"type": "NetworkUnavailable", "status": "True"}]}}`, "only the condition"},
		{"the number of pods", "status", `{"status": {"capacity": {"pods": "500"}}}`, "only the resource"},
		{"what can be allocated", "status", `{"status": {"allocatable": {"cpu": "64"}}}`, "only the resource"},
		{"a resource away", "status", `{"status": {"allocatable": {"memory": null}}}`, "only the resource"},
		{"a resource of others", "status", `{"status": {"capacity": {"example.com/gpu": "1"}}}`, "only the resource"},
		{"the address", "status", `{"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}}`, "nothing else"},
		{"the images", "status", `{"status": {"images": [{"names": ["x"]}]}}`, "nothing else"},
	} {
		t.Run("may not change "+tt.name, func(t *testing.T) {
			if err := patchNode(agent, "n1", tt.sub, tt.patch); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, want %q", err, tt.why)
			}
			if err := patchNode(c.admin, "n2", tt.sub, tt.patch); err != nil {
				t.Errorf("nor may the administrator: %v", err)
			}
		})
	}
}
