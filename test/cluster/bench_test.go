package cluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bursts is how often pods come to a node. Two are enough to check that pools grow, shrink and grow
// again while no sandbox fails; times are compared by more, which make bench-kube has.
var bursts = flag.Int("bursts", 2, "how often pods are bound at once to each node")

// ptpBursts are enough for the reference, which only shows how much of the pods' time is the
// kubelet's and two processors'.
const ptpBursts = 2

// contender is a way for pods of a node to get addresses.
type contender struct {
	name string
	n    *node
	ptp  bool // without enipool
	runs int
	took []burst // by round
}

// Pods are bound at once, first to the one node and then to the other, again and again, so that
// what the machine does meanwhile meets both: the bursts are compared one by one.
func TestTimeFromBoundToReady(t *testing.T) {
	c := start(t, "time")
	watch, blind, ptp := c.addNode("time-watch"), c.addNode("time-blind"), c.addNode("time-ptp")
	// No agent is for such nodes, so this one stays without enipool.
	for n, label := range map[*node]string{ptp: "type=virtual-kubelet", watch: "agent=watch", blind: "agent=blind"} {
		n.label(label)
	}
	ptp.installPtp()
	c.installSecond()
	c.install(c.overlay(simulated, first, hurried, onlyOn("watch")))
	all := []*contender{
		{name: "enipool", n: watch, runs: *bursts},
		{name: "enipool, watch off", n: blind, runs: *bursts},
		{name: "ptp+host-local", n: ptp, ptp: true, runs: ptpBursts},
	}
	for _, k := range all {
		c.bind(k.n, "first", 1)
	}
	c.Eventually("a pod on each node", func() error { return c.allReady("first", len(all)) }, c.warnings)
	for round := range *bursts {
		for _, k := range all {
			if round < k.runs {
				k.took = append(k.took, c.measure(k, round))
			}
		}
	}
	c.noSandboxFailed()
	c.t.Log("\n" + table(all) + "\n" + saved(all[0], all[1]))
}

// hurried is the agents' file: a node is soon as it was before the pods.
var hurried = strings.NewReplacer("coolDown: 5s", "coolDown: 1s", "stable: 10s", "stable: 5s").Replace(settings)

// label waits until the node has registered itself and gives it a label.
func (n *node) label(label string) {
	n.c.t.Helper()
	n.c.Eventually("label node "+n.Name, func() error { _, err := n.c.TryKubectl("label", "node", n.Name, label); return err })
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
	conf := strings.Replace(hurried, "enabled: true", "enabled: false", 1)
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
