package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// kubeTest is the compiled test of pkg/kube among the programs.
const kubeTest = "kube.test"

// mostPatches is how often a node is written in an hour at most: 12 may be needed at once, 700
// it was when each pod that came or went was told.
const mostPatches = 12

// hourLine finds how often a node was written in an hour of a test's virtual time.
var hourLine = regexp.MustCompile(`(?m)^=== RUN   (Test\w+)/?(\S*)\n\s+writes_test\.go:\d+: (\d+) patches$`)

// hourRow counts the writes of an agent to its Node in an hour, in virtual time: of an idle node,
// and of those whose 250 pods come and go, one each 2 s.
func (b *bench) hourRow() error {
	const tests = "PatchesOfAnHour|AnIdleNodeIsNotWritten"
	out, err := exec.Command(b.bin.path(kubeTest), "-test.run="+tests, "-test.v").CombinedOutput()
	if err != nil {
		return fmt.Errorf("count the writes of an hour: %w\n%s", err, out)
	}
	found := hourLine.FindAllStringSubmatch(string(out), -1)
	if len(found) < 2 {
		return fmt.Errorf("count the writes of an hour: no results in:\n%s", out)
	}
	for _, line := range found {
		what, most := "idle", 0.0
		if line[2] != "" {
			what, most = "250 pods come and go, "+strings.ReplaceAll(line[2], "_", " "), mostPatches
		}
		m := measure{what: "PATCHes of a node in an hour: " + what, unit: "requests", command: "go test -v -run '" + tests + "' ./pkg/kube"}
		v, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			return fmt.Errorf("count the writes of an hour: %w in %q", err, line[0])
		}
		m.add(v)
		b.report.add([]measure{m}, target{of: m, want: most})
	}
	return nil
}

// describesRow lets 5,000 idle nodes share the limits of an account of EC2, in virtual time.
func (b *bench) describesRow() error {
	nodes := b.pick(5000, 50)
	command := fmt.Sprintf("simulate --cloud aws --workload steady --nodes %d --pods-per-node 10 --duration 2h --compare batch -o json", nodes)
	b.progress("describes of %d idle nodes", nodes)
	p := process{path: b.bin.path("enipoolctl"), args: strings.Fields(command)}
	_, out, err := p.run()
	if err != nil {
		return fmt.Errorf("describes of idle nodes: %w", err)
	}
	var played struct {
		Results []struct {
			Usage []struct {
				Name             string
				PerSecond, Limit float64
			}
		}
	}
	if err := json.Unmarshal(out, &played); err != nil || len(played.Results) != 1 {
		return fmt.Errorf("describes of idle nodes: %d results, %w", len(played.Results), err)
	}
	for _, u := range played.Results[0].Usage {
		m := measure{what: fmt.Sprintf("%s of %d idle nodes", u.Name, nodes), unit: "calls/s", command: "enipoolctl " + command}
		m.add(u.PerSecond)
		b.report.add([]measure{m}, target{of: m, want: u.Limit / 2})
	}
	return nil
}
