package main

import (
	"fmt"
	"strings"
)

// planTargets are what enipoolctl's commands that compute are asked for, in
// milliseconds.
var planTargets = []struct {
	what    string
	command string
	want    float64
	once    bool
}{
	{"plan for a subnet", "plan --subnet 10.0.0.0/20 --instance-type m5.large --max-pods 27", 50, false},
	{"simulate 24 h of a node, quiet", "simulate --workload diurnal --pods-per-node 30 --duration 24h", 2000, false},
	{"simulate 24 h of a node, busy", "simulate --workload churn --pods-per-node 30 --duration 24h", 2000, false},
	{"simulate 24 h of 1,000 nodes", "simulate --workload diurnal --pods-per-node 30 --duration 24h --nodes 1000", 120_000, true},
}

// planRow measures planning and simulation: whole commands, without root's help.
func (b *bench) planRow() error {
	for _, t := range planTargets {
		m := measure{what: t.what, unit: "ms", command: "enipoolctl " + t.command}
		rounds := b.longRuns()
		if t.once {
			rounds = 1
		}
		for n := range rounds {
			b.round(t.what, n+1, rounds)
			p := process{path: b.bin.path("enipoolctl"), args: strings.Fields(t.command)}
			ms, _, err := p.run()
			if err != nil {
				return fmt.Errorf("%s: %w", t.what, err)
			}
			m.add(ms)
		}
		b.report.add([]measure{m}, target{of: m, want: t.want})
	}
	return nil
}
