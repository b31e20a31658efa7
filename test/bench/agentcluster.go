package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// inCluster is what is measured of an agent that watches its node's pods, by the unit
// that BenchmarkAgentInACluster reports it in.
var inCluster = []struct {
	variant, unit, what, line string
	want                      float64
}{
	{plainAgent, "busy-MB", "memory of the agent in a cluster, 250 pods just came", "VmRSS", mostMemory},
	{plainAgent, "idle-MB", "memory of the agent in a cluster, 250 pods, idle", "VmRSS", mostMemory},
	{plainAgent, "most-MB", "memory of the agent in a cluster, 250 pods, the most", "VmHWM", 0},
	{plainAgent, "anon-MB", "of it its own and no pages of the program, idle", "RssAnon", 0},
	{fastAgent, "busy-MB", "memory of the agent that keeps the fast path, 250 pods just came", "VmRSS", mostMemory},
	{fastAgent, "idle-MB", "memory of the agent that keeps the fast path, 250 pods, idle", "VmRSS", mostMemory},
	{fastAgent, "most-MB", "memory of the agent that keeps the fast path, 250 pods, the most", "VmHWM", 0},
	{fastAgent, "anon-MB", "of it its own and no pages of the program, with the fast path, idle", "RssAnon", 0},
}

// The agents that BenchmarkAgentInACluster measures.
const plainAgent, fastAgent = "plain", "fast-path"

// clusterMemoryRow measures the agent's memory where it watches the pods of a real API
// server, in a benchmark: what starts one is for tests.
func (b *bench) clusterMemoryRow() error {
	rounds := b.pick(3, 1)
	cmd := exec.Command(b.bin.path(agentTest), "-test.run=^$", "-test.bench=AgentInACluster", "-test.benchtime=1x", "-test.v", fmt.Sprintf("-test.count=%d", rounds))
	cmd.Env = append(os.Environ(), programsEnv+"="+string(b.bin))
	b.progress("an agent in a cluster, %d times", rounds)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of an agent in a cluster: %w\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP: BenchmarkAgentInACluster\n") {
		b.progress("the agent in a cluster is left out: `make kube` builds what it needs")
		return nil
	}
	for _, kind := range inCluster {
		if strings.Contains(string(out), "--- SKIP: BenchmarkAgentInACluster/"+kind.variant) {
			b.progress("left out, because the machine can't: %s", kind.what)
			continue
		}
		m := measure{what: kind.what, unit: "MB", command: "grep " + kind.line + " /proc/PID/status"}
		for _, found := range metricLine(kind.variant, kind.unit).FindAllStringSubmatch(string(out), -1) {
			v, err := strconv.ParseFloat(found[1], 64)
			if err != nil {
				return fmt.Errorf("benchmark of an agent in a cluster: %w in %q", err, found[0])
			}
			m.add(v)
		}
		if len(m.values) != rounds {
			return fmt.Errorf("benchmark of an agent in a cluster: %d results of %s in:\n%s", len(m.values), kind.unit, out)
		}
		b.report.add([]measure{m}, target{of: m, want: kind.want, shown: kind.want == 0})
	}
	return nil
}

// metricLine finds what a benchmark reports of a variant in a unit.
func metricLine(variant, unit string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^BenchmarkAgentInACluster/` + variant + `\S*\s.*?([\d.]+) ` + unit)
}
