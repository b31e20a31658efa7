package cri

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ptpConflist is a network of the reference plugins.
const ptpConflist = `{"cniVersion": "1.0.0", "name": "ptp", "plugins": [
	{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	{"type": "portmap", "capabilities": {"portMappings": true}},
	{"type": "bandwidth", "capabilities": {"bandwidth": true}}]}`

// contender is a kind of sandbox whose start and stop are timed.
type contender struct {
	name      string
	m         *testNode
	option    option
	run, stop []time.Duration
}

// BenchmarkRunPodSandbox times sandboxes in turn: with the node's own network, which is
// what containerd takes without any plugin, with enipool's shipped conflist, and with the
// reference plugins; of pods that ask for nothing, and that ask for a host port and limits.
func BenchmarkRunPodSandbox(b *testing.B) {
	r := newRegion(b, "bench")
	ours := newNode(r, "a", plan{limits: small, coolDown: "0s"})
	theirs := newPtpNode(r, "b")
	nothing := func(*api.PodSandboxConfig) {}
	list := []*contender{
		{name: "the node's network", m: ours, option: onNodeNetwork},
		{name: "enipool", m: ours, option: nothing},
		{name: "ptp+host-local+portmap+bandwidth", m: theirs, option: nothing},
		{name: "enipool, host port and limits", m: ours, option: onPortWithLimits},
		{name: "ptp+host-local+portmap+bandwidth, host port and limits", m: theirs, option: onPortWithLimits},
	}
	round := 0
	for b.Loop() {
		for _, c := range list {
			c.once(fmt.Sprintf("pod%d", round))
		}
		round++
	}
	b.ReportMetric(0, "ns/op") // of all together, which tells nothing
	b.Logf("medians of %d\n%s", round, table(list))
}

func onNodeNetwork(c *api.PodSandboxConfig) {
	c.Hostname = "" // it is the node's
	c.Linux.SecurityContext = &api.LinuxSandboxSecurityContext{NamespaceOptions: &api.NamespaceOption{Network: api.NamespaceMode_NODE}}
}

func onPortWithLimits(c *api.PodSandboxConfig) {
	onPort(8080)(c)
	limited(c)
}

// newPtpNode starts a node with the reference plugins in enipool's place.
func newPtpNode(r *region, name string) *testNode {
	r.t.Helper()
	bin, err := programs()
	r.must(err)
	m := newBareNode(r, name, plan{limits: small})
	m.install(bin.reference, "ptp", "host-local")
	m.publish(ptpConflist)
	m.waitNetwork()
	return m
}

// once runs, stops and removes a sandbox.
func (c *contender) once(name string) {
	c.m.t.Helper()
	p := &pod{m: c.m, config: newConfig(name, c.option)}
	start := time.Now()
	c.m.must(p.create())
	c.run = append(c.run, time.Since(start))
	start = time.Now()
	c.m.must(p.stop())
	c.stop = append(c.stop, time.Since(start))
	c.m.must(p.remove())
}

// table shows the medians, and what they have on top of those of the first.
func table(list []*contender) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NETWORK\tRunPodSandbox\tFOR THE NETWORK\tStopPodSandbox\tFOR THE NETWORK")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
	for _, c := range list {
		run, stop := median(c.run), median(c.stop)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.name, ms(run), ms(run-median(list[0].run)), ms(stop), ms(stop-median(list[0].stop)))
	}
	w.Flush()
	return out.String()
}

func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
