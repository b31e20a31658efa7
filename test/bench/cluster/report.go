package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/bench/table"
)

// report collects what was found.
type report struct {
	sizes
	screen  io.Writer
	rows    []reportRow
	missing []string // parts that failed

	isWanted func(part string) bool
	file     string // that is written, "" for none

	atOnceCalls map[string]int
	atOnceTook  time.Duration

	mu    sync.Mutex
	error error // the first thing that went wrong beside what is measured
}

// reportRow is something measured, with what is wanted of it.
type reportRow struct{ what, is, wanted, reached string }

func (r *report) add(what, is, wanted string, reached bool) {
	r.rows = append(r.rows, reportRow{what, is, "≤ " + wanted, map[bool]string{true: "yes", false: "NO"}[reached]})
}

// addShown adds what is shown and not judged.
func (r *report) addShown(what, is string) {
	r.rows = append(r.rows, reportRow{what, is, "-", "-"})
}

func (r *report) progress(format string, a ...any) { fmt.Fprintf(r.screen, format+"\n", a...) }

// save writes what was found so far: what comes later may fail, or be ended.
func (r *report) save() error {
	if r.file == "" {
		return nil
	}
	if err := os.WriteFile(r.file, []byte(r.text()), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// noteWrong keeps what goes wrong beside what is measured. That something is ended is nothing wrong.
func (r *report) noteWrong(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.error == nil {
		r.error = err
	}
}

func (r *report) wrong() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.error
}

// operatorsEnd returns the ends of the operators' logs, as an error's words.
func (b *bed) operatorsEnd() error {
	var errs []error
	for _, o := range b.operators {
		text, err := os.ReadFile(o.log)
		errs = append(errs, err, fmt.Errorf("the operator said:\n%s", text[max(0, len(text)-2000):]))
	}
	return errors.Join(errs...)
}

func callsSince(after, before map[string]int) map[string]int {
	d := map[string]int{}
	for action, n := range after {
		if n -= before[action]; n > 0 {
			d[action] = n
		}
	}
	return d
}

func describeCalls(calls map[string]int) string {
	counts := map[string]float64{}
	for action, n := range calls {
		counts[action] = float64(n)
	}
	return describeCounts(counts, 0)
}

// describeCounts writes counts by name, or with a time how many a second.
func describeCounts(counts map[string]float64, in time.Duration) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if in > 0 {
			list = append(list, fmt.Sprintf("%s %.3f", name, counts[name]/in.Seconds()))
		} else {
			list = append(list, fmt.Sprintf("%s %.0f", name, counts[name]))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// text is the whole of CLUSTER.md.
func (r *report) text() string {
	var t strings.Builder
	fmt.Fprintf(&t, "# The operator of a cluster, measured\n\nWritten by `make bench-cluster` (`go run ./test/bench/cluster`) on %s. %s\n\n", time.Now().Format(time.DateOnly), machine())
	b := r.buckets()[sim.ActAssign]
	fmt.Fprintf(&t, note, r.nodes, share, r.podsPerNode(), map[bool]string{true: "with the phase and address of each that runs ", false: ""}[r.phases], r.settle,
		r.rates, int64(b.Burst*share/100), int64(time.Second*share/100/b.Every))
	rows := [][]string{{"what", "measured", "wanted", "reached"}}
	for _, row := range r.rows {
		rows = append(rows, []string{row.what, row.is, row.wanted, row.reached})
	}
	t.WriteString(table.Markdown(rows))
	for _, part := range r.missing {
		fmt.Fprintf(&t, "\nThe part %s failed: what is missing of it was not measured.\n", part)
	}
	return t.String()
}

const note = `Real etcd and API server, the operator's own processes with an account of a simulated cloud behind a loopback socket, and %d
agents of the real code in one process: each watches its Node, its pods and its NodeNetwork by itself, and writes them by
resourceVersion. Nodes and pods bound to them %[4]sare written through the API as a kubelet and a scheduler
write them; kwok is not used. Left out of a node are its kernel and the file of its node cache, whose lines are in memory.
The account has EC2's buckets by action, times %[6]d, of which the operator takes %[2]d %%, describes that lag up to 0.5 s, and calls
that take 0.1 s to 1 s; nodes are m5.24xlarge with %[3]d pods each, so that one call brings what a node needs. The bound
is (nodes - %[7]d) / %[8]d a second and the latency of a call: no order of calls is faster. settle is %[5]s.
All of it shares the machine's cores, and what else runs there.

`

// machine describes what the numbers are of, and not whose it is.
func machine() string {
	var u unix.Utsname
	kernel := "?"
	if unix.Uname(&u) == nil {
		kernel = unix.ByteSliceToString(u.Release[:])
	}
	return fmt.Sprintf("Linux %s, %d CPUs, %s.", kernel, runtime.NumCPU(), runtime.Version())
}
