package manifests

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/test/kube"
)

// What installs the operator takes it off again, as the other overlays do: no kind and no object waits for an operator that is gone by then.
func TestTheOperatorIsTakenOffWithoutARest(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	c.install(root + "/operator")
	c.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io")
	c.addNode("n1", nil)
	c.must(c.objects(c.Config().Token).Create(context.Background(), c.nodeNetwork("n1")))
	c.Kubectl("delete", "--kustomize="+root+"/operator", "--wait=false")
	err := kube.Wait(20*time.Second, func() error {
		left, err := c.TryKubectl("get", "crd", "nodenetworks.enipool.io", "--ignore-not-found", "--output=jsonpath={.metadata.deletionTimestamp} {.status.conditions[?(@.type=='Terminating')].message}")
		if left = strings.TrimSpace(left); err == nil && left != "" {
			err = errors.New(left)
		}
		return err
	})
	if err != nil {
		again, wrong := c.TryKubectl("apply", "--server-side", "--kustomize="+root+"/operator")
		made := c.objects(c.Config().Token)
		n := c.nodeNetwork("n1")
		n.Name = "n2"
		t.Errorf("the kind stays: %v\ninstalled again: %v %v\nan agent's object then: %v", err, strings.Count(again, "\n"), wrong, made.Create(context.Background(), n))
	}
}
