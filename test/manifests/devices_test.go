package manifests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sliceOf is a ResourceSlice of a driver on a node.
func sliceOf(name, node, driver string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
}

func TestAnAgentWritesTheDevicesOfItsNodeAlone(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(with(t, root+"/overlays/sim", "dra"))
	for _, name := range []string{"n1", "n2"} {
		c.addNode(name, nil)
	}
	ctx := context.Background()
	agent := c.as(c.agentToken("n1")).ResourceV1().ResourceSlices()
	unbound := c.as(strings.TrimSpace(c.Kubectl("create", "token", "enipool-agent", "--namespace=kube-system"))).ResourceV1().ResourceSlices()
	const otherNode = "the agent of node n1 writes the devices of no other one"
	refused := func(err error, why string) error {
		if err == nil || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("%v, want %q", err, why)
		}
		return nil
	}
	c.Eventually("role and policy count", func() error {
		_, err := agent.Create(ctx, sliceOf("other", "n2", "enipool.io"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refused(err, otherNode)
	})
	_, err := unbound.Create(ctx, sliceOf("n1-enipool.io", "n1", "enipool.io"), metav1.CreateOptions{})
	c.must(refused(err, "the token of this agent is bound to no node"))
	_, err = agent.Create(ctx, sliceOf("n1-enipool.io", "n1", "gpu.example.com"), metav1.CreateOptions{})
	c.must(refused(err, "the driver enipool.io alone"))
	_, err = c.admin.ResourceV1().ResourceSlices().Create(ctx, sliceOf("other", "n2", "enipool.io"), metav1.CreateOptions{})
	c.must(err)
	c.must(refused(agent.Delete(ctx, "other", metav1.DeleteOptions{}), otherNode))

	// A pool by another node's name, of whose devices pods would take addresses of that one, and the name that its slice is to have.
	foreign := sliceOf("n1-enipool.io", "n1", "enipool.io")
	foreign.Spec.Pool.Name = "n2"
	_, err = agent.Create(ctx, foreign, metav1.CreateOptions{})
	c.must(refused(err, otherNode))
	_, err = agent.Create(ctx, sliceOf("n2-enipool.io", "n1", "enipool.io"), metav1.CreateOptions{})
	c.must(refused(err, otherNode))

	own, err := agent.Create(ctx, sliceOf("n1-enipool.io", "n1", "enipool.io"), metav1.CreateOptions{})
	c.must(err)
	own.Spec.Pool.Generation++
	_, err = agent.Update(ctx, own, metav1.UpdateOptions{})
	c.must(err)
	c.must(agent.Delete(ctx, "n1-enipool.io", metav1.DeleteOptions{}))
}
