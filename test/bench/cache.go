package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// benchLine is a line of `go test -bench` for a node cache of that many addresses.
var benchLine = regexp.MustCompile(`(?m)^BenchmarkPickAndCommit/(\d+)(?:-\d+)?\s.*?([\d.]+) µs/pick`)

// cacheRow runs the Go benchmark of the node cache, several times.
func (b *bench) cacheRow() error {
	args := []string{"-test.run=^$", "-test.bench=PickAndCommit", fmt.Sprintf("-test.count=%d", b.longRuns()), "-test.benchtime=500x"}
	b.progress("pick and commit in the node cache, %d times", b.longRuns())
	cmd := exec.Command(b.bin.path(cacheTest), args...)
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of the node cache: %w\n%s", err, out)
	}
	bySize := map[string]*measure{}
	for _, n := range []string{"320", "4096"} {
		bySize[n] = &measure{what: "pick and commit, " + n + " addresses", unit: "µs",
			command: "go test -run '^$' -bench PickAndCommit -benchtime 500x ./pkg/nodecache"}
	}
	for _, m := range benchLine.FindAllStringSubmatch(string(out), -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return fmt.Errorf("benchmark of the node cache: %w in %q", err, m[0])
		}
		if size := bySize[m[1]]; size != nil {
			size.add(v)
		}
	}
	small, large := *bySize["320"], *bySize["4096"]
	if len(small.values) == 0 || len(large.values) == 0 {
		return fmt.Errorf("benchmark of the node cache: no result for 320 and 4096 addresses in:\n%s", out)
	}
	b.report.add([]measure{small, large}, target{of: small, want: 100}, target{of: large, want: 1000})
	return nil
}
