package main

import "time"

// mostIdleShare is what an idle agent may take of a core, in percent.
const mostIdleShare = 0.05

// realDescribe is cloud.describe of a real cloud, where it is not named.
const realDescribe = "5m"

// The agent is looked at for restLength when it has had calmAfter to find that nothing happens:
// it compares everything once in that time then.
const (
	calmAfter  = 210 * time.Second
	restLength = 4 * time.Minute
)

// atRest is what is measured of an idle agent in a cluster, by the unit that BenchmarkAgentAtRest
// reports it in. A want below 0 asks for nothing.
var atRest = []struct {
	unit, what, of, command string
	want                    float64
}{
	{"idle-percent", "CPU of the idle agent in a cluster, 250 pods", "% of a core", "CPU clock of the process", mostIdleShare},
	{"idle-describes", "describes of the idle agent, a minute", "calls", "calls that the simulated cloud got; cloud.describe: " + realDescribe, 0.5},
	{"idle-changes", "calls of the idle agent that change the cloud, a minute", "calls", "calls that the simulated cloud got", 0},
	{"idle-writes", "writes of the idle agent to the API server, a minute", "requests", "apiserver_request_total: POST, PUT, PATCH, DELETE of nodes, pods, events", 0},
	{"idle-kB", "what the idle agent writes to files and pipes, a minute", "kB", "grep wchar /proc/PID/io", -1},
	{"idle-syscalls", "reads and writes of the idle agent, a minute", "calls", "grep syscr, syscw /proc/PID/io", -1},
}

// restRow measures what an agent does on a node of a cluster where nothing happens.
func (b *bench) restRow() error {
	rounds := b.pick(2, 1)
	b.progress("an idle agent in a cluster, %d times %s", rounds, calmAfter+restLength)
	out, skipped, err := b.benchmark("AgentAtRest", rounds)
	if err != nil || skipped {
		return err
	}
	for _, kind := range atRest {
		m := measure{what: kind.what, unit: kind.of, command: kind.command + ", for " + restLength.String()}
		if err := m.fill(out, "AgentAtRest", plainAgent, kind.unit); err != nil {
			return err
		}
		b.report.add([]measure{m}, target{of: m, want: kind.want, shown: kind.want < 0})
	}
	return nil
}
