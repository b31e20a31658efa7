package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// burst is how many pods start at once, when one runs already.
const burst = 36

// contender is a way for pods of a node to get addresses.
type contender struct {
	name   string
	n      *node
	labels string          // that pods have
	idle   func() error    // nil once the node is as before the first pod
	took   []time.Duration // from bound to Ready, sorted
}

// Pods that start at once on one node of each kind in turn. What they wait for is
// mostly the kubelet and two processors; the reference shows how much.
func TestTimeFromBoundToReady(t *testing.T) {
	c := start(t, "time")
	watch, blind, ptp := c.addNode("time-watch"), c.addNode("time-blind"), c.addNode("time-ptp")
	// No agent is for such nodes, so this one stays without enipool.
	for n, label := range map[*node]string{ptp: "type=virtual-kubelet", watch: "agent=watch", blind: "agent=blind"} {
		n.label(label)
	}
	ptp.installPtp()
	c.installSecond()
	c.install(c.overlay(simulated, first, settings, onlyOn("watch")))
	all := []*contender{
		{name: "enipool", n: watch, idle: watch.isIdle},
		{name: "enipool, watch off", n: blind, idle: blind.isIdle, labels: ", enipool.io/pod-addresses: none"},
		{name: "ptp+host-local", n: ptp, idle: func() error { return nil }, labels: ", enipool.io/pod-addresses: none"},
	}
	order := slices.Clone(all)
	for range 2 {
		for _, k := range order {
			k.took = append(k.took, c.measure(k)...)
		}
		slices.Reverse(order) // who comes first finds another machine
	}
	c.noSandboxFailed()
	c.print(all)
}

// label waits until the node has registered itself and gives it a label.
func (n *node) label(label string) {
	n.c.t.Helper()
	n.c.Eventually("label node "+n.Name, func() error { _, err := n.c.TryKubectl("label", "node", n.Name, label); return err })
}

// measure runs a burst on the contender's node and removes it again.
func (c *cluster) measure(k *contender) (took []time.Duration) {
	c.t.Helper()
	c.Eventually(k.name+": its node is idle", k.idle)
	text := strings.ReplaceAll(fmt.Sprintf(web, 1), "labels: {app: web}}", "labels: {app: web"+k.labels+"}}")
	c.Apply(strings.Replace(text, "    spec:\n", "    spec:\n      nodeSelector: {kubernetes.io/hostname: "+k.n.Name+"}\n", 1))
	c.run(1)
	first := c.web()[0]
	c.scale(burst)
	for _, p := range c.web() {
		if p.UID != first.UID {
			took = append(took, p.ready.Sub(p.bound))
		}
	}
	c.Kubectl("delete", "deployment/web", "--wait")
	c.Eventually("no web server is left", func() error {
		if left := len(c.web()); left > 0 {
			return fmt.Errorf("%d are", left)
		}
		return nil
	})
	return took
}

// isIdle returns nil once the pool is that of a node without pods.
func (n *node) isIdle() error {
	pool := n.pool()
	if sum(n.used()) > 0 || len(pool.Addresses) != 16 {
		return fmt.Errorf("%d addresses, used by ENI: %v", len(pool.Addresses), n.used())
	}
	return nil
}

// print shows the figures.
func (c *cluster) print(all []*contender) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "from bound to Ready, s\t%d pods at once on a node, twice\tp50\tp99\tmost\t\n", burst-1)
	for _, k := range all {
		slices.Sort(k.took)
		at := func(share float64) string {
			return fmt.Sprintf("%.2f", k.took[int(share*float64(len(k.took)-1)+0.5)].Seconds())
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t\n", k.name, len(k.took), at(0.5), at(0.99), at(1))
	}
	w.Flush()
	c.t.Log("\n" + out.String())
}

// onlyOn keeps the agents of a kustomization to nodes with a label.
func onlyOn(kind string) string {
	return fmt.Sprintf(`patches:
- target: {kind: DaemonSet}
  patch: |-
    - {op: add, path: /spec/template/spec/nodeSelector/agent, value: %s}
`, kind)
}

// installSecond installs enipool once more, in a namespace of its own, for nodes whose
// agents know nothing of pods until the plugin asks for an address. What a cluster has
// once is left to the other installation.
func (c *cluster) installSecond() {
	c.t.Helper()
	c.Kubectl("create", "namespace", "blind")
	conf := strings.Replace(settings, "enabled: true", "enabled: false", 1)
	text := c.Kubectl("kustomize", c.overlay(simulated, first, conf, onlyOn("blind")))
	for object := range strings.SplitSeq(text, "\n---\n") {
		for _, kind := range []string{"ServiceAccount", "ConfigMap", "DaemonSet"} {
			if strings.Contains("\n"+object, "\nkind: "+kind+"\n") {
				c.Apply(strings.ReplaceAll(object, "namespace: kube-system", "namespace: blind"))
			}
		}
	}
}

// installPtp gives the node a network of the reference plugins.
func (n *node) installPtp() {
	n.c.t.Helper()
	const conflist = `{"cniVersion": "1.0.0", "name": "ptp", "plugins": [
	{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	{"type": "portmap", "capabilities": {"portMappings": true}},
	{"type": "bandwidth", "capabilities": {"bandwidth": true}}]}`
	for _, plugin := range []string{"ptp", "host-local", "loopback", "portmap", "bandwidth"} {
		text, err := os.ReadFile(filepath.Join("..", "..", ".build", "cni", plugin))
		n.c.must(err)
		n.c.must(os.WriteFile(n.Path("/opt/cni/bin/"+plugin), text, 0o755))
	}
	n.c.must(os.WriteFile(n.Path("/etc/cni/net.d/10-ptp.conflist"), []byte(conflist), 0o644))
}
