package main

import "strings"

// inCluster is what is measured of an agent that watches its node's pods, by the unit
// that BenchmarkAgentInACluster reports it in. A want below 0 asks for nothing.
var inCluster = []struct {
	variant, unit, what, line string
	want                      float64
}{
	{plainAgent, "busy-MB", "memory of the agent in a cluster, 250 pods just came", "VmRSS", mostMemory},
	{plainAgent, "idle-MB", "memory of the agent in a cluster, 250 pods, idle", "VmRSS", mostMemory},
	{plainAgent, "most-MB", "memory of the agent in a cluster, 250 pods, the most", "VmHWM", mostMemory},
	{plainAgent, "anon-MB", "of it its own and no pages of the program, idle", "RssAnon", -1},
	{fastAgent, "busy-MB", "memory of the agent that keeps the fast path, 250 pods just came", "VmRSS", mostMemory},
	{fastAgent, "idle-MB", "memory of the agent that keeps the fast path, 250 pods, idle", "VmRSS", mostMemory},
	{fastAgent, "most-MB", "memory of the agent that keeps the fast path, 250 pods, the most", "VmHWM", mostMemory},
	{fastAgent, "anon-MB", "of it its own and no pages of the program, with the fast path, idle", "RssAnon", -1},
}

// The agents that BenchmarkAgentInACluster measures.
const plainAgent, fastAgent = "plain", "fast-path"

// clusterMemoryRow measures the agent's memory where it watches the pods of a real API
// server, in a benchmark: what starts one is for tests.
func (b *bench) clusterMemoryRow() error {
	rounds := b.pick(3, 1)
	b.progress("an agent in a cluster, %d times", rounds)
	out, skipped, err := b.benchmark("AgentInACluster", rounds)
	if err != nil || skipped {
		return err
	}
	for _, kind := range inCluster {
		if strings.Contains(out, "--- SKIP: BenchmarkAgentInACluster/"+kind.variant) {
			b.progress("left out, because the machine can't: %s", kind.what)
			continue
		}
		m := measure{what: kind.what, unit: "MB", command: "grep " + kind.line + " /proc/PID/status"}
		if err := m.fill(out, "AgentInACluster", kind.variant, kind.unit); err != nil {
			return err
		}
		b.report.add([]measure{m}, target{of: m, want: kind.want, shown: kind.want < 0})
	}
	return nil
}
