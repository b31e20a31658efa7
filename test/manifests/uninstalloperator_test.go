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
	c.install(root + "/topologies")
	c.install(root + "/operator")
	c.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io", "crd/addressclaims.enipool.io")
	c.addNode("n1", nil)
	c.must(c.objects(c.Config().Token).Create(context.Background(), c.nodeNetwork("n1")))
	c.Apply(keptClaim)
	kinds := func(there bool) {
		t.Helper()
		for _, name := range []string{"nodenetworks.enipool.io", "addressclaims.enipool.io"} {
			err := kube.Wait(20*time.Second, func() error {
				got, err := c.TryKubectl("get", "crd", name, "--ignore-not-found", "--output=jsonpath={.metadata.name} {.metadata.deletionTimestamp}")
				want := "" // not one that waits for its objects either
				if there {
					want = name
				}
				if got = strings.TrimSpace(got); err == nil && got != want {
					err = errors.New(got)
				}
				return err
			})
			if err != nil {
				t.Fatalf("the kind %s is there: want %t: %v", name, there, err)
			}
		}
	}
	c.Kubectl("delete", "--kustomize="+root+"/operator")
	kinds(true)
	made := c.nodeNetwork("n1")
	made.Name = "n2"
	c.must(c.objects(c.Config().Token).Create(context.Background(), made)) // as an agent does whose operator comes again

	if out, err := exec.Command("go", "run", "../../plugins/enipoolctl", "migrate", "withdraw", "--kubeconfig", c.Kubeconfig("admin")).CombinedOutput(); err != nil {
		t.Fatalf("withdraw: %v\n%s", err, out)
	}
	c.Kubectl("delete", "--wait=false", "--kustomize="+root+"/topologies")
	c.Kubectl("delete", "--wait=false", "--kustomize="+root+"/crds")
	kinds(false)
}

// keptClaim is an address that an operator has kept for a pod.
const keptClaim = `
apiVersion: enipool.io/v1alpha1
kind: AddressClaim
metadata: {name: 10.1.0.32, finalizers: [enipool.io/address]}
spec: {topology: databases, subnet: subnet-0a1, address: 10.1.0.32, namespace: db, pod: mysql-0, keep: TTL, ttl: 168h0m0s}
`
