package manifests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/test/kube"
)

// objects is a client of enipool's kinds for the owner of a token.
func (c *cluster) objects(token string) client.Client {
	c.t.Helper()
	scheme := runtime.NewScheme()
	c.must(crd.AddToScheme(scheme))
	objects, err := client.New(c.config(token), client.Options{Scheme: scheme})
	c.must(err)
	return objects
}

// nodeNetwork is what the agent of a node makes.
func (c *cluster) nodeNetwork(node string) *crd.NodeNetwork {
	c.t.Helper()
	n, err := c.admin.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	c.must(err)
	return &crd.NodeNetwork{
		ObjectMeta: metav1.ObjectMeta{Name: node, Finalizers: []string{"enipool.io/enis"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: n.UID}}},
		Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Slots: 16, Pool: crd.Pool{Batch: 16}},
	}
}

// stamps is what a cluster's own rules may do to whatever is written: each write gets labels and annotations, another one each time.
const stamps = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: stamps}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [enipool.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [nodenetworks]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/metadata/labels", value: {"example.com/team": "net"}},
        JSONPatch{op: "add", path: "/metadata/annotations", value: {"example.com/slots": string(object.spec.slots)}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: stamps}
spec: {policyName: stamps}
`

// labelled checks that an agent's writes are taken where others add labels and annotations to them.
func (c *cluster) labelled(agent client.Client) {
	c.t.Helper()
	c.Apply(stamps)
	own, slots := &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, 16
	c.Eventually("labels are added to what an agent writes", func() error {
		slots = 48 - slots
		err := agent.Patch(context.Background(), own, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"slots": %d}}`, slots)))
		if err == nil && (own.Labels["example.com/team"] != "net" || own.Annotations["example.com/slots"] != fmt.Sprint(slots) || slots != 32) {
			err = fmt.Errorf("%v, %v", own.Labels, own.Annotations)
		}
		return err
	})
}

func TestAnAgentWritesTheNodeNetworkOfItsNodeAlone(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/base")
	c.Kubectl("apply", "--server-side", "--kustomize="+root+"/crds")
	c.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io", "crd/subnets.enipool.io")
	for _, name := range []string{"n1", "n2"} {
		c.addNode(name, nil)
	}
	ctx, admin := context.Background(), c.objects(c.Config().Token)
	agent := c.objects(c.agentToken("n1"))
	unbound := c.objects(strings.TrimSpace(c.Kubectl("create", "token", "enipool-agent", "--namespace=kube-system")))
	c.Eventually("role and policy count", func() error {
		if err := agent.Create(ctx, c.nodeNetwork("n2"), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "the agent of node n1 writes no other NodeNetwork") {
			return fmt.Errorf("the other node: %v", err)
		}
		return nil
	})
	refused := func(what string, err error, why string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", what, err, why)
		}
	}
	refused("with a token of no node", unbound.Create(ctx, c.nodeNetwork("n1")), "the token of this agent is bound to no node")
	for what, change := range map[string]func(*crd.NodeNetwork){
		"of nobody":              func(n *crd.NodeNetwork) { n.OwnerReferences = nil },
		"another node's":         func(n *crd.NodeNetwork) { n.OwnerReferences[0].Name = "n2" },
		"of what is no node":     func(n *crd.NodeNetwork) { n.OwnerReferences[0].Kind = "Pod" },
		"with another finalizer": func(n *crd.NodeNetwork) { n.Finalizers = append(n.Finalizers, "example.com/f") },
		"without a finalizer":    func(n *crd.NodeNetwork) { n.Finalizers = nil },
	} {
		n := c.nodeNetwork("n1")
		change(n)
		refused(what, agent.Create(ctx, n, client.DryRunAll), "a NodeNetwork ")
	}
	c.must(agent.Create(ctx, c.nodeNetwork("n1")))
	c.must(admin.Create(ctx, c.nodeNetwork("n2")))

	patch := func(who client.Client, node, text string) error {
		return who.Patch(ctx, &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if err := patch(agent, "n1", `{"spec": {"slots": 32, "release": ["10.0.0.7"]}}`); err != nil {
		t.Errorf("its own: %v", err)
	}
	refused("another's spec", patch(agent, "n2", `{"spec": {"slots": 32}}`), "writes no other NodeNetwork")
	for _, text := range []string{
		`{"metadata": {"finalizers": null}}`, `{"metadata": {"ownerReferences": null}}`,
	} {
		refused(text, patch(agent, "n1", text), "an agent changes no finalizers or owners")
		if err := patch(admin, "n2", text); err != nil {
			t.Errorf("%s: nor may the administrator: %v", text, err)
		}
	}
	// What a backup has brought back belongs to nobody: it may be given its own Node, and nothing else.
	c.must(patch(admin, "n1", `{"metadata": {"ownerReferences": null}}`))
	owner := `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "%s", "uid": "` + string(c.nodeNetwork("n1").OwnerReferences[0].UID) + `"}]}}`
	refused("another owner", patch(agent, "n1", fmt.Sprintf(owner, "n2")), "a NodeNetwork belongs to its Node")
	if err := patch(agent, "n1", fmt.Sprintf(owner, "n1")); err != nil {
		t.Errorf("its owner again: %v", err)
	}
	c.labelled(agent)
	own := &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	c.must(admin.Get(ctx, client.ObjectKeyFromObject(own), own))
	for what, err := range map[string]error{
		"its status": agent.Status().Patch(ctx, own, client.RawPatch(types.MergePatchType, []byte(`{"status": {"revision": 9}}`))),
		"get":        agent.Get(ctx, client.ObjectKeyFromObject(own), own.DeepCopy()),
		"update":     agent.Update(ctx, own),
		"delete":     agent.Delete(ctx, own),
		"a subnet":   agent.Create(ctx, &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "subnet-1"}, Spec: crd.SubnetSpec{Use: "Shared"}}),
		"subnets":    agent.List(ctx, &crd.SubnetList{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var left crd.NodeNetworkList
	c.must(agent.List(ctx, &left))
	slots := map[string]int32{}
	for _, n := range left.Items {
		slots[n.Name] = n.Spec.Slots
	}
	if diff := cmp.Diff(map[string]int32{"n1": 32, "n2": 16}, slots); diff != "" {
		t.Error(diff)
	}
}
