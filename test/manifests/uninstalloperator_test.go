package manifests

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/test/kube"
)

// Taking the operator off leaves the kinds and their objects alone, which would wait for an operator that is gone by then. Once
// it is said that none comes they are deleted like anything else.
func TestTheOperatorIsTakenOffWithoutARest(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	c.install(root + "/crds")
	c.install(root + "/operator")
	c.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io")
	c.addNode("n1", nil)
	c.must(c.objects(c.Config().Token).Create(context.Background(), c.nodeNetwork("n1")))
	kind := func(want bool) {
		t.Helper()
		err := kube.Wait(20*time.Second, func() error {
			got, err := c.TryKubectl("get", "crd", "nodenetworks.enipool.io", "--ignore-not-found", "--output=jsonpath={.metadata.name} {.metadata.deletionTimestamp}")
			if got = strings.TrimSpace(got); err == nil && (got == "nodenetworks.enipool.io") != want {
				err = errors.New(got)
			}
			return err
		})
		if err != nil {
			t.Fatalf("the kind is there: want %t: %v", want, err)
		}
	}
	c.Kubectl("delete", "--kustomize="+root+"/operator")
	kind(true)
	made := c.nodeNetwork("n1")
	made.Name = "n2"
	c.must(c.objects(c.Config().Token).Create(context.Background(), made)) // as an agent does whose operator comes again

	if out, err := exec.Command("go", "run", "../../plugins/enipoolctl", "migrate", "withdraw", "--kubeconfig", c.Kubeconfig("admin")).CombinedOutput(); err != nil {
		t.Fatalf("withdraw: %v\n%s", err, out)
	}
	c.Kubectl("delete", "--kustomize="+root+"/crds")
	kind(false)
}
