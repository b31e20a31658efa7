package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// benchmark runs a Go benchmark of this package that measures the agent in a cluster, so many
// times. skipped tells that this machine has nothing to run it with.
func (b *bench) benchmark(name string, rounds int) (out string, skipped bool, err error) {
	cmd := exec.Command(b.bin.path(agentTest), "-test.run=^$", "-test.bench=^Benchmark"+name+"$", "-test.benchtime=1x", "-test.v", fmt.Sprintf("-test.count=%d", rounds))
	cmd.Env = append(os.Environ(), programsEnv+"="+string(b.bin))
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", false, fmt.Errorf("benchmark %s: %w\n%s", name, err, text)
	}
	if strings.Contains(string(text), "--- SKIP: Benchmark"+name+"\n") {
		b.progress("%s is left out: `make kube` builds what it needs", name)
		return "", true, nil
	}
	return string(text), false, nil
}

// fill adds what a benchmark reported of a variant in a unit.
func (m *measure) fill(out, benchmark, variant, unit string) error {
	for _, found := range metricLine(benchmark, variant, unit).FindAllStringSubmatch(out, -1) {
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return fmt.Errorf("benchmark %s: %w in %q", benchmark, err, found[0])
		}
		m.add(v)
	}
	if len(m.values) == 0 {
		return fmt.Errorf("benchmark %s: no result of %s in:\n%s", benchmark, unit, out)
	}
	return nil
}

// metricLine finds what a benchmark reports of a variant in a unit.
func metricLine(benchmark, variant, unit string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^Benchmark` + benchmark + `/` + variant + `(?:-\d+)?\s.*?([\d.]+) ` + regexp.QuoteMeta(unit))
}
