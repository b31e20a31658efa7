// Command topologies measures what pods of topologies wait for and what they cost the operator: it runs the tests and benchmarks that
// measure it, and writes test/bench/TOPOLOGIES.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enipool/enipool/test/bench/table"
)

const resultsFile = "test/bench/TOPOLOGIES.md"

func main() {
	moves := flag.Int("moves", 100, "pods that come again for each row of the times")
	keep := flag.Bool("keep", true, "write "+resultsFile)
	flag.Parse()
	if err := run(*moves, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "topologies:", err)
		os.Exit(1)
	}
}

func run(moves int, keep bool) error {
	var failed error
	part := func(args ...string) string {
		fmt.Fprintln(os.Stderr, "go", strings.Join(args, " "))
		out, err := exec.Command("go", args...).CombinedOutput()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out))
		}
		return string(out)
	}
	times := part("test", "./pkg/operator", "-count=1", "-timeout=1h", "-v", "-run=^TestHowLongAPodIsWithoutItsAddress$", fmt.Sprint("-moves=", moves))
	requests := part("test", "./pkg/operator/classify", "-count=1", "-v", "-run=^TestPodsThatComeTogetherCostOnePatchEachAndOneRead$")
	pods := part("test", "./pkg/operator/classify", "-count=1", "-run=^$", "-bench=^(BenchmarkClassify|BenchmarkCostOfAPod)$", "-benchmem")
	rounds := part("test", "./pkg/operator/claims", "-count=1", "-timeout=1h", "-run=^$", "-bench=^BenchmarkDecision$", "-benchtime=5x")
	text := fmt.Sprintf(words, time.Now().Format(time.DateOnly), computer(), table.Markdown(append([][]string{{"a pod comes again on", "pods", "p50", "p99", "most"}}, measured(times)...)),
		table.Markdown(append([][]string{{"what", "CPU and bytes"}}, append(benchmarks(pods), measured(requests)...)...)), table.Markdown(append([][]string{{"cluster and what has happened", "of one decision"}}, benchmarks(rounds)...)))
	fmt.Println(text)
	if failed != nil || !keep {
		return failed
	}
	return os.WriteFile(resultsFile, []byte(text), 0o644)
}

// measured returns the rows that tests have logged.
func measured(out string) (rows [][]string) {
	for line := range strings.Lines(out) {
		_, row, is := strings.Cut(line, "measured | ")
		if !is {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.TrimSuffix(strings.TrimSpace(row), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if strings.HasPrefix(cells[0], "requests") { // it stands among what benchmarks say
			cells = []string{cells[0], strings.Join(cells[1:], ", ")}
		}
		rows = append(rows, cells)
	}
	return rows
}

// benchmarks returns what benchmarks have said, by their names.
func benchmarks(out string) (rows [][]string) {
	for line := range strings.Lines(out) {
		name, figures, is := strings.Cut(line, "\t")
		if !is || !strings.HasPrefix(name, "Benchmark") {
			continue
		}
		name = strings.TrimPrefix(strings.TrimSpace(name), "Benchmark")
		if end := strings.LastIndexByte(name, '-'); end > 0 {
			name = name[:end]
		}
		var cells []string
		for i, figure := range strings.Split(figures, "\t") {
			if i > 0 { // the first is how often it was done
				cells = append(cells, strings.Join(strings.Fields(figure), " "))
			}
		}
		rows = append(rows, []string{strings.ReplaceAll(name, "_", " "), strings.Join(cells, ", ")})
	}
	return rows
}

// computer describes what the numbers are of, and not whose it is.
func computer() string {
	var u unix.Utsname
	kernel := "?"
	if unix.Uname(&u) == nil {
		kernel = unix.ByteSliceToString(u.Release[:])
	}
	return fmt.Sprintf("Linux %s, %d CPUs, %s.", kernel, runtime.NumCPU(), runtime.Version())
}

const words = "# Pods of topologies, measured\n\nWritten by `make bench-topologies` (`go run ./test/bench/topologies`) on %s. %s\n" + `
## How long a pod is without its address

From the end of a pod's object until a pod of its name, which is bound at that moment, has its old address, and the cloud has that on its node. Virtual
time: the operator is the real one; its nodes are four with the node state and the protocol of the real agent, which acts within 50 ms of what it hears. The account
is simulated with what EC2 takes: calls about addresses 0.6 s to 1 s, others 0.1 s to 0.2 s, describes that lag up to 0.5 s, buckets of 100 calls and 5 more a second.
What StatefulSet controller, scheduler and kubelet take is not in it. Values are rounded up to 25 ms.

%s
An address moves by two calls, one after the other. An agent that says nothing has 10 s to end with the address; a node that the cluster does not
reach, or that is out of service, has none.

## What a pod costs when it is classified

Classify is the decision alone, of 32 topologies with 1,000 claims each; CostOfAPod is all of it: the pod is read, classified, and written as a patch.

%s
## What claims cost the operator

A decision on all nodes and claims of a cluster, which a term makes at most five times a second while something changes, and once in five seconds else. MB is what is known of
nodes, pods and claims on the heap, the objects of claims among it; each node has 30 addresses for other pods too.

%s`
