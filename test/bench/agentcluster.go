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
	unit, what, line string
	want             float64
}{
	{"busy-MB", "memory of the agent in a cluster, 250 pods just came", "VmRSS", mostMemory},
	{"idle-MB", "memory of the agent in a cluster, 250 pods, idle", "VmRSS", mostMemory},
	{"most-MB", "memory of the agent in a cluster, 250 pods, the most", "VmHWM", 0},
	{"anon-MB", "of it its own and no pages of the program, idle", "RssAnon", 0},
}

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
	if strings.Contains(string(out), "--- SKIP") {
		b.progress("the agent in a cluster is left out: `make kube` builds what it needs")
		return nil
	}
	for _, kind := range inCluster {
		m := measure{what: kind.what, unit: "MB", command: "grep " + kind.line + " /proc/PID/status"}
		for _, found := range metricLine(kind.unit).FindAllStringSubmatch(string(out), -1) {
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

// metricLine finds what a benchmark reports in a unit.
func metricLine(unit string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^BenchmarkAgentInACluster\S*\s.*?([\d.]+) ` + unit)
}
