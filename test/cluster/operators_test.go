package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
	corev1 "k8s.io/api/core/v1"
)

// operatorFile is that of the operators; more is added to it, keys of the cloud first.
const operatorFile = `settle: 1s
cloud:
  provider: sim
  endpoint: unix:///run/account/vpc.sock
  instance: %s
  subnets: [%s]
  cluster: %q
`

// operatorOverlay is an overlay upon the shipped manifests, with a way to the account.
const operatorOverlay = `resources: [%s]
images: [{name: ghcr.io/enipool/enipool-operator, newTag: %s}]
configMapGenerator: [{name: enipool-operator-config, namespace: kube-system, behavior: merge, files: [operator.yaml]}]
patches:
- target: {kind: Deployment, name: enipool-operator}
  patch: |
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: account, hostPath: {path: /run/account, type: Directory}}}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: account, mountPath: /run/account}}
`

// installOperators installs the shipped manifests as people do, and waits until both operators are ready. name is the cluster's in the cloud; more is
// added to their file.
func (c *cluster) installOperators(name, more string) {
	c.t.Helper()
	for _, n := range c.nodes {
		n.Import(archive(c.dir, "operator-"+first))
		n.openAccount()
	}
	dir := c.t.TempDir()
	base, err := filepath.Abs("../../conf/kubernetes/operator")
	c.must(err)
	base, err = filepath.Rel(dir, base)
	c.must(err)
	for name, text := range map[string]string{"kustomization.yaml": fmt.Sprintf(operatorOverlay, base, first),
		"operator.yaml": fmt.Sprintf(operatorFile, c.nodes[0].Name, strings.Join(c.subnets, ", "), name) + more} {
		c.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize=../../conf/kubernetes/crds")
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize="+dir)
	c.Kubectl("--namespace=kube-system", "rollout", "status", "deployment/enipool-operator", "--timeout=3m")
}

// openAccount serves the account for operators of the node, which run as nobody in particular.
func (n *node) openAccount() {
	n.c.t.Helper()
	socket := n.Path("/run/account/vpc.sock")
	n.c.must(os.MkdirAll(filepath.Dir(socket), 0o755))
	stop, err := n.c.vpc.Serve(socket, nil)
	n.c.must(err)
	n.c.must(os.Chmod(socket, 0o666))
	n.c.t.Cleanup(func() { n.c.must(stop()) }) // as long as the node has its files
}

// areInstances tells of each Node what a cloud's controllers tell: its instance and its zone.
func (c *cluster) areInstances() {
	c.t.Helper()
	zone := ""
	c.vpc.Account.View(0, func(tx *sim.Tx) { zone = tx.Subnets()[0].Zone })
	for _, n := range c.nodes {
		patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}, "spec": {"providerID": "sim:///%s/%s"}}`, corev1.LabelTopologyZone, zone, zone, n.Name)
		c.Eventually("node "+n.Name+" has joined", func() error {
			_, err := c.TryKubectl("patch", "node", n.Name, "--patch="+patch)
			return err
		})
	}
}

// ctl runs enipoolctl as the cluster's administrator.
func (c *cluster) ctl(args ...string) {
	c.t.Helper()
	out, err := exec.Command(program(c.dir, first, "enipoolctl"), append(args, "--kubeconfig="+c.Kubeconfig("admin"))...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("enipoolctl %v: %v\n%s", args, err, out)
	}
	c.t.Logf("enipoolctl %v\n%s", args, out)
}
