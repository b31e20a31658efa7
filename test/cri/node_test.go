package cri

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// plan is what a node is like.
type plan struct {
	limits   eni.Limits // its agent's batch fills an ENI
	minPool  int
	coolDown string // 30s if not set
	cache    string // path of the node cache; if not set, where it is by default
}

// small are limits by which 16 pods fill an ENI.
var small = eni.Limits{ENIs: 4, V4: 17}

// tiny are limits by which two pods fill an ENI.
var tiny = eni.Limits{ENIs: 4, V4: 3}

// testNode is a node of a region: containerd, the plugins and an agent.
type testNode struct {
	*kube.Node
	plan
	t      testing.TB
	r      *region
	agent  *kube.Program
	conn   *grpc.ClientConn
	cri    api.RuntimeServiceClient
	pods   map[string]*pod     // that were not removed, by sandbox
	had    map[netip.Addr]bool // every address that a pod has had
	before map[string]string   // traces without pods
}

// newNode starts a node whose agent runs and that is ready for pods.
func newNode(r *region, name string, p plan) *testNode {
	r.t.Helper()
	m := newBareNode(r, name, p)
	m.leavesNothing()
	m.agent.Start()
	m.publish(m.conflist())
	m.waitNetwork()
	return m
}

// newBareNode starts a node without an agent and without a network configuration.
func newBareNode(r *region, name string, p plan) *testNode {
	r.t.Helper()
	bin, err := programs()
	r.must(err)
	m := &testNode{plan: p, t: r.t, r: r, pods: map[string]*pod{}, had: map[netip.Addr]bool{}}
	m.Node = kube.StartRuntime(r.t, kube.NodeOptions{Name: name, Netns: r.addNode(name, p.limits)})
	m.install(bin.ours, "enipool")
	m.install(bin.reference, "loopback", "portmap", "bandwidth")
	m.writeAgentConf()
	m.agent = m.Program("agent", m.answers, filepath.Join(bin.ours, "enipool-agent"), "--config="+agentConfPath)
	m.dial()
	r.t.Cleanup(m.close)
	return m
}

func (m *testNode) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("node %s: %v", m.Name, err)
	}
}

// install puts plugins where containerd looks for them.
func (m *testNode) install(dir string, plugins ...string) {
	m.t.Helper()
	for _, plugin := range plugins {
		text, err := os.ReadFile(filepath.Join(dir, plugin))
		m.must(err)
		m.must(os.WriteFile(m.Path("/opt/cni/bin/"+plugin), text, 0o755))
	}
}

// write writes a file of the node in one step, as installers do.
func (m *testNode) write(path, text string) {
	m.t.Helper()
	at := m.Path(path)
	m.must(os.MkdirAll(filepath.Dir(at), 0o755))
	m.must(os.WriteFile(at+".new", []byte(text), 0o600))
	m.must(os.Rename(at+".new", at))
}

// Where the network configuration is, here and on a node.
const (
	conflistSource = "../../conf/10-enipool.conflist"
	chainSource    = "../../conf/10-enipool-chain.conflist" // with the reference plugins
	conflistPath   = "/etc/cni/net.d/10-enipool.conflist"
	defaultCache   = "/run/enipool/node.cache"
)

// conflist is the network configuration that enipool ships. Where the node has
// its cache elsewhere it says so.
func (m *testNode) conflist() string {
	m.t.Helper()
	return m.conflistOf(conflistSource)
}

func (m *testNode) conflistOf(source string) string {
	m.t.Helper()
	text, err := os.ReadFile(source)
	m.must(err)
	return strings.Replace(string(text), defaultCache, m.cachePath(), 1)
}

func (m *testNode) cachePath() string {
	if m.cache == "" {
		return defaultCache
	}
	return m.cache
}

// ctl runs enipoolctl on the node.
func (m *testNode) ctl(args ...string) (string, error) {
	bin, err := programs()
	if err != nil {
		return "", err
	}
	return m.Try(append([]string{filepath.Join(bin.ours, "enipoolctl"), "--cache=" + m.cachePath()}, args...)...)
}

// primary returns the node's own address.
func (m *testNode) primary() netip.Addr { return m.r.Account.Attached(m.Name)[0].V4.Primary.Addr() }

// eniOf returns the device index of the ENI that has the address in the cloud.
func (m *testNode) eniOf(a netip.Addr) (int, error) {
	for _, nic := range m.r.Account.Attached(m.Name) {
		for _, its := range nic.Addresses {
			if its == a {
				return nic.Index, nil
			}
		}
	}
	return 0, fmt.Errorf("no ENI of node %s has the address %s", m.Name, a)
}

const internet = lab.Internet4

// region is a VPC whose cloud agents call at a socket.
type region struct {
	*lab.VPC
	t      testing.TB
	socket string
}

// newRegion makes a VPC without nodes; its name is one word, a test's own.
func newRegion(t testing.TB, name string) *region {
	t.Helper()
	nettest.Need(t)
	kube.NeedNodes(t)
	r := &region{lab.NewVPC(t, name, sim.Options{}, lab.V4), t, filepath.Join(lab.Dir(t), "vpc.sock")}
	r.must(r.Account.AddSubnet(lab.Subnet))
	_, err := r.Serve(r.socket, nil)
	r.must(err)
	return r
}

func (r *region) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// addNode returns the path of the network namespace of a new node.
func (r *region) addNode(name string, limits eni.Limits) string {
	r.t.Helper()
	ns, err := r.AddNode(sim.NodeSpec{Name: name, Limits: limits, Subnet: lab.Subnet.ID})
	r.must(err)
	return ns.Path()
}
