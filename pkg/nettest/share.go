package nettest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/gofrs/flock"
)

// shared is "yes" in the environment of the processes that Share starts.
const shared = "ENIPOOL_NETTEST_SHARED"

// Share is Main for a package whose tests wait much and have one network namespace in
// common, so that they can't run at once in one process. That number of processes, each
// with namespaces of its own, share them out. One process runs them where some are chosen, or
// something is measured.
//
// What the tests make in the repository's folder they make under a lock: see Once.
func Share(m *testing.M, processes int) {
	if os.Getenv(shared) == "" && os.Getenv(inside) == "" && runsAllTests() {
		os.Exit(shareTests(processes))
	}
	Main(m)
}

// runsAllTests tells whether all tests of the package are to run, and nothing else.
func runsAllTests() bool {
	flag.Parse()
	all := true
	flag.Visit(func(f *flag.Flag) {
		all = all && slices.Contains([]string{"test.count", "test.timeout", "test.paniconexit0", "test.v", "test.parallel", "test.short"}, f.Name)
	})
	return all
}

// shareTests lets the processes run the tests, those that follow each other in different ones,
// and shows what they say one after the other.
func shareTests(processes int) (code int) {
	list, err := runSelf("-test.list=.")
	names := strings.Fields(string(list))
	if err != nil || len(names) == 0 {
		fmt.Fprintf(os.Stderr, "list the tests: %v\n%s", err, list)
		return 1
	}
	var (
		shares = make([][]string, min(processes, len(names)))
		output sync.Mutex
		done   sync.WaitGroup
	)
	for i, name := range names {
		shares[i%len(shares)] = append(shares[i%len(shares)], name)
	}
	for _, share := range shares {
		done.Go(func() {
			said, err := runSelf("-test.run=^(" + strings.Join(share, "|") + ")$")
			output.Lock()
			defer output.Unlock()
			os.Stdout.Write(said)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%d of %d tests: %v\n", len(share), len(names), err)
				code = 1
			}
		})
	}
	done.Wait()
	return code
}

// runSelf runs this program again with one more argument, and returns what it says. It dies
// with this one.
func runSelf(arg string) (said []byte, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append(os.Args[1:], arg)...)
	cmd.Env = append(os.Environ(), shared+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// The parent whose death kills is the thread, which therefore waits.
	err = isolate.OnThread(cmd.Run)
	return out.Bytes(), err
}

// Once runs fn while no other process runs its own with the same lock file, which is made
// where it is missing: what one has made the next one finds.
func Once(lock string, fn func() error) error {
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		return err
	}
	l := flock.New(lock)
	if err := l.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", lock, err)
	}
	defer l.Close() // which unlocks it
	return fn()
}
