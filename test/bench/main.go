// Command bench measures the plugin against the reference plugins and against
// what netlink alone takes: whole processes, in turn, in one run, in network
// namespaces of its own. It writes test/bench/RESULTS.md. A target that is
// missed is a result and no failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/enipool/enipool/pkg/isolate/sandbox"
)

// programsEnv carries the folder of the compiled programs into the namespaces,
// and tells that this is the inside.
const programsEnv = "ENIPOOL_BENCH_PROGRAMS"

const resultsFile = "test/bench/RESULTS.md"

func main() {
	b := &bench{}
	var only string
	flag.IntVar(&b.runs, "n", 0, "timed runs of each ADD, DEL and VERSION (default 50, with -quick 5)")
	flag.BoolVar(&b.quick, "quick", false, "few runs, to try it out")
	flag.StringVar(&only, "only", "", "run only the rows whose name matches this regular expression: "+fmt.Sprint(rowNames()))
	flag.Parse()
	code, err := run(b, only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(b *bench, only string) (int, error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("-only: %w", err)
	}
	if dir := os.Getenv(programsEnv); dir != "" {
		b.bin = programs(dir)
		return 0, b.measure(match, only == "")
	}
	if os.Geteuid() != 0 {
		return 0, fmt.Errorf("needs root: it makes hundreds of network namespaces; run `sudo make bench`")
	}
	dir, err := os.MkdirTemp("", "enipool-bench")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	b.progress("building the plugins")
	if err := errors.Join(build(dir), buildAgent(dir)); err != nil {
		return 0, err
	}
	if err := pinAll(2); err != nil {
		return 0, err
	}
	return sandbox.Again(programsEnv + "=" + dir)
}

// bench is one run.
type bench struct {
	bin     programs
	runs    int
	quick   bool
	report  report
	node    node
	crowded []crowded // nil until a row needs them
	names   int
}

type row struct {
	name string
	run  func(*bench) error
}

func rows() []row {
	return []row{
		{"start", (*bench).startRow},
		{"attach", (*bench).attachRow},
		{"conflist", (*bench).conflistRow},
		{"conflist-parallel", (*bench).conflistBurstRow},
		{"growth", (*bench).growthRow},
		{"parallel", (*bench).parallelRow},
		{"waiting", (*bench).waitingRow},
		{"cache", (*bench).cacheRow},
		{"hostports", (*bench).hostPortsRow},
		{"talks", (*bench).talksRow},
		{"packets", (*bench).packetsRow},
		{"agent", (*bench).agentRow},
		{"agent-rss", (*bench).clusterMemoryRow},
		{"agent-rest", (*bench).restRow},
		{"agent-burst", (*bench).burstRow},
		{"agent-hour", (*bench).hourRow},
		{"agent-describes", (*bench).describesRow},
		{"plan", (*bench).planRow},
	}
}

func rowNames() (names []string) {
	for _, r := range rows() {
		names = append(names, r.name)
	}
	return names
}

// measure runs the rows inside the namespaces. Only a full run is worth keeping, also
// one of which a row failed: the others took a quarter of an hour.
func (b *bench) measure(match *regexp.Regexp, keep bool) error {
	if b.runs == 0 {
		b.runs = b.pick(50, 5)
	}
	if err := sandbox.Enter(); err != nil {
		return err
	}
	// /run is a tmpfs of our own, like the one where runtimes keep such files.
	if err := os.Setenv("TMPDIR", "/run"); err != nil {
		return err
	}
	var err, failed error
	if b.node, err = newNode(space{}, "map", "10.0.1.0/24", "10.0.2.0/24"); err != nil {
		return err
	}
	for _, r := range rows() {
		if !match.MatchString(r.name) {
			continue
		}
		if err := r.run(b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", r.name, err))
			b.progress("row %s failed and is left out: the end says why", r.name)
		}
	}
	text := b.results() + agentNote
	fmt.Println(text)
	if !keep || b.quick {
		return failed
	}
	return errors.Join(failed, os.WriteFile(filepath.FromSlash(resultsFile), []byte(text), 0o644))
}

func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// longRuns is how often something is repeated that takes a second or more.
func (b *bench) longRuns() int { return b.pick(7, 2) }

func (b *bench) progress(format string, a ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", a...)
}

// round tells now and then how far a row is.
func (b *bench) round(what string, n, of int) {
	if of < 20 || n%10 == 0 {
		b.progress("%s: round %d of %d", what, n, of)
	}
}

// unique returns a name that no other part of the run has.
func (b *bench) unique(what string) string {
	b.names++
	return fmt.Sprintf("%s-%d-", what, b.names)
}

// temp returns the path of a folder in memory that does not exist yet.
func (b *bench) temp(what string) string { return filepath.Join("/run/bench", what) }
