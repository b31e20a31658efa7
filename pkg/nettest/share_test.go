package nettest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// into names the folder in which tests of the package note that they ran, each in its
// process.
const into = "NETTEST_SHARED_INTO"

func TestMain(m *testing.M) { nettest.Share(m, 3) }

func note(t *testing.T) {
	dir := os.Getenv(into)
	if dir == "" {
		return // it is there for TestEachTestRunsInOneOfTheProcesses
	}
	f, err := os.CreateTemp(dir, fmt.Sprintf("%s %d ", t.Name(), os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if os.Getenv("NETTEST_FAILS") == t.Name() {
		t.Error("as it is told to")
	}
}

func TestA(t *testing.T) { note(t) }
func TestB(t *testing.T) { note(t) }
func TestC(t *testing.T) { note(t) }
func TestD(t *testing.T) { note(t) }

func TestEachTestRunsInOneOfTheProcesses(t *testing.T) {
	if os.Getenv(into) != "" {
		return // of the run that is looked at
	}
	for _, fails := range []string{"", "TestD"} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.count=1", "-test.v")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "ENIPOOL_NETTEST") }), into+"="+dir, "NETTEST_FAILS="+fails)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (fails != "") || strings.Contains(string(out), "--- FAIL: "+fails) != (fails != "") {
			t.Errorf("with failing %q: %v\n%s", fails, err, out)
		}
		noted, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		processes := map[string]bool{}
		for _, file := range noted {
			words := strings.Fields(filepath.Base(file))
			names, processes[words[1]] = append(names, words[0]), true
		}
		if !slices.Equal(names, []string{"TestA", "TestB", "TestC", "TestD"}) || len(processes) != 3 {
			t.Errorf("%v ran in %d processes, want each once in 3\n%s", names, len(processes), out)
		}
	}
}
