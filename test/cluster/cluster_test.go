package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// latency is what calls take in this cloud, like in EC2: a describe less than an
// assignment, and that much less than a new ENI that has to be attached.
var latency = map[string]sim.Latency{
	"":            {Base: 50 * time.Millisecond, Jitter: 50 * time.Millisecond},
	sim.ActAssign: {Base: 250 * time.Millisecond, Jitter: 100 * time.Millisecond},
	sim.ActAttach: {Base: 2 * time.Second, Jitter: time.Second},
	sim.ActDetach: {Base: time.Second, Jitter: time.Second},
}

// limits are those of every node: a batch of 16 is an ENI with its primary.
var limits = eni.Limits{ENIs: 6, V4: 17}

// cluster is a Kubernetes whose nodes are on a simulated VPC.
type cluster struct {
	*kube.Cluster
	vpc     *lab.VPC
	subnets []string // those that operators use
	t       testing.TB
	api     *kubernetes.Clientset // as the administrator
	dir     string                // of enipool's images
	nodes   []*node
	pods    *sightings
}

// node is one of them.
type node struct {
	*kube.Node
	c     *cluster
	cloud func() error // ends its way to it
}

// start starts a cluster without nodes.
func start(t *testing.T, name string) *cluster {
	t.Helper()
	need(t)
	dir, err := images()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{dir: dir, vpc: lab.NewVPC(t, name, sim.Options{Latency: latency}, lab.V4),
		Cluster: kube.Start(t, kube.Options{Scheduler: true, ControllerManager: true})}
	c.t = c.T()
	c.addSubnet(lab.Subnet)
	its := c.Config()
	c.api, err = kubernetes.NewForConfig(&rest.Config{Host: its.Host, BearerToken: its.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(its.CA)}, QPS: 200, Burst: 400})
	c.must(err)
	c.pods = watchPods(c)
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// addSubnet adds a subnet that operators which are installed later use.
func (c *cluster) addSubnet(s sim.Subnet) {
	c.t.Helper()
	c.must(c.vpc.Account.AddSubnet(s))
	c.subnets = append(c.subnets, s.ID)
}

// addNode starts a node that finds the cloud where the overlay for simulated VPCs
// looks for it.
func (c *cluster) addNode(name string) *node {
	c.t.Helper()
	return c.addNodeWith(sim.NodeSpec{Name: name, Limits: limits, Subnet: lab.Subnet.ID}, kube.NodeOptions{})
}

// addNodeWith is addNode for an instance of another kind, and what else its node has.
func (c *cluster) addNodeWith(m sim.NodeSpec, o kube.NodeOptions) *node {
	c.t.Helper()
	netns, err := c.vpc.AddNode(m)
	c.must(err)
	o.Name, o.Netns, o.IP = m.Name, netns.Path(), c.vpc.Account.Attached(m.Name)[0].V4.Primary.Addr()
	o.Images = append([]string{archive(c.dir, first)}, o.Images...)
	n := &node{Node: c.Cluster.AddNode(o), c: c}
	c.must(os.MkdirAll(n.Path("/run/enipool"), 0o700))
	n.openCloud()
	c.t.Cleanup(n.closeCloud) // as long as the node has its files
	c.nodes = append(c.nodes, n)
	c.t.Cleanup(n.show)
	return n
}

// openCloud gives the node's agent its way to the cloud.
func (n *node) openCloud() {
	n.c.t.Helper()
	var err error
	n.cloud, err = n.c.vpc.Serve(n.Path("/run/enipool/vpc.sock"), nil)
	n.c.must(err)
}

// closeCloud takes it away.
func (n *node) closeCloud() {
	n.c.t.Helper()
	n.c.must(n.cloud())
}

// simulated is the overlay for simulated VPCs.
const simulated = "overlays/sim"

// settings is the agent's file for a test: all happens as soon as it may.
const settings = `listen: 127.0.0.1:9809
vpcCIDRs: [10.0.0.0/16]
coolDown: 5s
resync: 5s
settle: 1s
orphanAge: 5s
leakAge: 15s
cloud:
  endpoint: unix:///run/enipool/vpc.sock
  timeout: 10s
pool:
  stable: 10s
  delay: 0s
  burstWindow: 1s
  releaseInterval: 1s
kubernetes:
  enabled: true
  faultGrace: 5s
  faultQuiet: 5s
`

// overlay writes a kustomization upon one of conf/kubernetes, as an operator does
// who wants another version or other settings; more is added to it.
func (c *cluster) overlay(on, tag, agentConf, more string) string {
	c.t.Helper()
	dir := c.t.TempDir()
	base, err := filepath.Abs("../../conf/kubernetes/" + on)
	c.must(err)
	base, err = filepath.Rel(dir, base)
	c.must(err)
	text := fmt.Sprintf(`resources: [%s]
images: [{name: ghcr.io/enipool/enipool, newTag: %s}]
configMapGenerator: [{name: enipool-agent, namespace: kube-system, behavior: merge, files: [agent.yaml]}]
generatorOptions: {disableNameSuffixHash: true}
%s`, base, tag, more)
	for name, text := range map[string]string{"kustomization.yaml": text, "agent.yaml": agentConf} {
		c.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// install applies a kustomization and waits until every agent is ready.
func (c *cluster) install(dir string) {
	c.t.Helper()
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize="+dir)
	c.Kubectl("--namespace=kube-system", "rollout", "status", "daemonset/enipool-agent", "--timeout=3m")
	for _, n := range c.nodes {
		n.WaitReady()
	}
}

// ctl runs the installed enipoolctl on the node itself; the API server may be away.
func (n *node) ctl(args ...string) (string, error) {
	return n.Try(append([]string{program(n.c.dir, first, "enipoolctl")}, args...)...)
}

// show logs what the node's plugin and agent said, if the test has failed.
func (n *node) show() {
	if !n.c.t.Failed() {
		return
	}
	said, _ := n.Try("sh", "-c", `tail -n 40 /var/log/enipool.log
		for log in /var/log/pods/*enipool-agent*/*/*.log /var/log/pods/*enipool-operator*/*/*.log; do echo $log; tail -n 40 $log; done`)
	n.c.t.Logf("node %s:\n%s", n.Name, said)
}
