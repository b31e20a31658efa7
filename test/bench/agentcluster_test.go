package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
	gocmp "github.com/google/go-cmp/cmp"
)

// BenchmarkAgentInACluster runs the agent's own process on a node whose pods a real API
// server knows: 250 that are bound to it and have their addresses, and as many of
// another node. `go run ./test/bench -only agent-rss` calls it.
func BenchmarkAgentInACluster(b *testing.B) {
	programsFolder := os.Getenv(programsEnv)
	if programsFolder == "" {
		b.Skip("needs the programs and namespaces of go run ./test/bench -only agent-rss")
	}
	kube.Need(b)
	for _, variant := range []string{plainAgent, fastAgent} {
		b.Run(variant, func(b *testing.B) {
			keys := ""
			if variant == fastAgent {
				nettest.MountBPF(b)
				keys = "fastPath: auto\n"
			}
			for b.Loop() {
				c := clusterNode{B: b, bench: &bench{bin: programs(programsFolder)}, api: kube.Start(b, kube.Options{}), keys: keys}
				c.full(c.measure)
			}
		})
	}
}

// clusterNode is a node of the VPC and of a cluster.
type clusterNode struct {
	*testing.B
	bench *bench
	api   *kube.Cluster
	keys  string // of the agent's configuration, on top

	describe string // the agent's cloud.describe

	closed *sync.RWMutex // as long as it is locked nothing of the API server reaches the node
}

func (c clusterNode) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// full runs fn on a node whose 250 pods have their addresses.
func (c clusterNode) full(fn func(*agentNode)) {
	cloud, err := c.bench.newCloud()
	c.must(err)
	defer func() { c.must(cloud.Close()) }()
	n, err := cloud.newAgentNode(c.bench, strategies[0])
	c.must(err)
	n.describe = c.describe
	stop := c.relay(n.space)
	defer stop()
	c.addNode(n.name)
	n.uids = c.addPods(n.name)
	c.addPods("another")
	n.keys = fmt.Sprintf("kubernetes: {enabled: true, kubeconfig: %q}\n%s", c.api.Kubeconfig("admin"), c.keys)
	c.must(n.launch())
	defer func() { c.must(n.stop()) }()
	c.must(n.knows(agentPods))
	_, failed, err := n.attach(agentPods)
	c.must(err)
	if failed > 0 {
		c.Errorf("%d ADDs failed", failed)
	}
	c.must(n.settle())
	fn(n)
}

// measure looks at the agent's memory.
func (c clusterNode) measure(n *agentNode) {
	c.needFast(n)
	page := "/proc/" + strconv.Itoa(n.process.Cmd.Process.Pid) + "/status"
	c.ReportMetric(c.median(page, "VmRSS", 10*time.Second), "busy-MB")
	c.must(n.configure("resync: 1s\n")) // an hour's worth of work
	time.Sleep(time.Minute)
	c.ReportMetric(c.median(page, "VmRSS", 30*time.Second), "idle-MB")
	c.ReportMetric(c.median(page, "RssAnon", time.Second), "anon-MB")
	c.ReportMetric(c.median(page, "VmHWM", time.Second), "most-MB")
	c.must(n.knows(agentPods))
	c.needFast(n)
}

// needFast wants the fast path on, where it is measured.
func (c clusterNode) needFast(n *agentNode) {
	c.Helper()
	if c.keys == "" {
		return
	}
	page := status.Beside(n.cache)
	c.must(kube.Wait(time.Minute, func() error {
		s, err := page.Read()
		if err == nil && (s.FastPath == nil || len(s.FastPath.Off) > 0) {
			err = fmt.Errorf("the fast path is off: %v", s.FastPath)
		}
		return err
	}))
}

// median looks at a line of a process's status for a while.
func (c clusterNode) median(page, line string, length time.Duration) float64 {
	c.Helper()
	var all measure
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		m, err := memoryMeasure(page, line, line)
		c.must(err)
		all.add(m.median())
	}
	return all.median()
}

// relay brings the API server into the namespace of a node.
func (c clusterNode) relay(node space) (stop func()) {
	at, err := url.Parse(c.api.Config().Host)
	c.must(err)
	gate := cmp.Or(c.closed, &sync.RWMutex{})
	way, err := lab.Reach(at.Host, node.do, func(client net.Conn) net.Conn { return gated{client, gate} })
	c.must(err)
	return way.Close
}

// gated is a connection on which nothing is sent while the gate is closed.
type gated struct {
	net.Conn
	closed *sync.RWMutex
}

// CloseWrite tells the client that the server has said all.
func (g gated) CloseWrite() error { return g.Conn.(*net.TCPConn).CloseWrite() }

func (g gated) Write(b []byte) (int, error) {
	g.closed.RLock()
	defer g.closed.RUnlock()
	return g.Conn.Write(b)
}

// addNode makes the Node as a kubelet does, with what makes those of real ones large.
func (c clusterNode) addNode(name string) {
	var images []map[string]any
	for i := range 50 {
		images = append(images, map[string]any{"sizeBytes": 1 << 24, "names": []string{
			fmt.Sprintf("registry.example.com/team/service-%d@sha256:%064d", i, i), fmt.Sprintf("registry.example.com/team/service-%d:v1.%d", i, i)}})
	}
	room := map[string]string{"cpu": "16", "memory": "64Gi", "pods": "300", "ephemeral-storage": "100Gi"}
	c.api.Apply(asJSON(c.B, map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}}))
	c.api.Kubectl("patch", "node", name, "--subresource=status", "--type=merge", "--patch="+asJSON(c.B, map[string]any{
		"status": map[string]any{"capacity": room, "allocatable": room, "images": images}}))
}

// addPods binds pods to a node, of the size that real ones have, and returns their UIDs.
func (c clusterNode) addPods(node string) (uids []string) {
	var env []map[string]string
	for i := range 20 {
		env = append(env, map[string]string{"name": fmt.Sprintf("SETTING_%d", i), "value": strings.Repeat("x", 40)})
	}
	var list []map[string]any
	for i := range agentPods {
		list = append(list, map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": podName(node, i), "namespace": "default", "labels": map[string]string{"app": "web", "tier": "front"}},
			"spec": map[string]any{"nodeName": node, "containers": []any{
				map[string]any{"name": "web", "image": "registry.example.com/team/web:v1", "env": env},
				map[string]any{"name": "proxy", "image": "registry.example.com/team/proxy:v1", "env": env}}}})
	}
	c.api.Apply(asJSON(c.B, map[string]any{"apiVersion": "v1", "kind": "List", "items": list}))
	for i := range agentPods {
		var pod struct{ Metadata struct{ UID string } }
		c.must(c.api.Get("/api/v1/namespaces/default/pods/"+podName(node, i), &pod))
		uids = append(uids, pod.Metadata.UID)
	}
	return uids
}

// podName is what add calls the pods of the node that is measured.
func podName(node string, i int) string {
	if node == "another" {
		return fmt.Sprint("other-", i)
	}
	return fmt.Sprint("web-", i)
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// knows waits until the agent knows so many pods of the cluster and wants no more than
// their addresses.
func (n *agentNode) knows(pods int) error {
	page := status.Beside(n.cache)
	return kube.Wait(time.Minute, func() error {
		s, err := page.Read()
		if err == nil && (s.Pods != pods || s.Demand != pods || s.Addresses.Attached != agentPool) {
			err = fmt.Errorf("the agent knows %d pods, wants addresses for %d and has %d\n%s", s.Pods, s.Demand, s.Addresses.Attached, n.log())
		}
		return err
	})
}

func TestWhatTheBenchmarkOfAClusterReportsIsFound(t *testing.T) {
	lines := map[string]string{}
	for i, kind := range inCluster {
		if lines[kind.variant] == "" {
			lines[kind.variant] = "\nBenchmarkAgentInACluster/" + kind.variant + "-2   \t       1\t  99 ns/op"
		}
		lines[kind.variant] += fmt.Sprintf("\t        %d.50 %s", i, kind.unit)
	}
	out := lines[plainAgent] + lines[fastAgent]
	for i, kind := range inCluster {
		var m measure
		err := m.fill(out+out+"\n", "AgentInACluster", kind.variant, kind.unit)
		if diff := gocmp.Diff([]float64{float64(i) + 0.5, float64(i) + 0.5}, m.values); err != nil || diff != "" {
			t.Errorf("%s of %s: %v\n%s", kind.unit, kind.variant, err, diff)
		}
	}
	var m measure
	if err := m.fill(out, "AgentInACluster", plainAgent, "MB"); err == nil {
		t.Errorf("found %v of nothing that was reported", m.values)
	}
}
