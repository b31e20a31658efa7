package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// prefix starts the names of folders and cgroups; the pid of their test and a
// number follow.
const prefix = "enipool-kube-"

// makeFolder makes the folder for all files of the n-th cluster of this process.
func makeFolder(n uint32) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), n))
	return dir, os.MkdirAll(filepath.Join(dir, "log"), 0o755)
}

// removeFolder removes it, and shows the ends of the logs if the test has failed.
func removeFolder(t testing.TB, dir string) {
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(dir, "log", "*"))
		for _, log := range logs {
			t.Logf("the end of %s:\n%s", filepath.Base(log), tail(log, 30))
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// tail returns the last lines of a file.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// removeStale removes what tests left that were killed before they could tidy up.
// Their processes died with them.
func removeStale() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if n, err := strconv.Atoi(pid); err != nil || n == os.Getpid() {
			continue
		}
		if _, err := os.Stat(filepath.Join("/proc", pid)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// The cgroups first: the folder is how they are found.
		if removeCgroups(filepath.Base(dir)+"-*") == nil {
			_ = os.RemoveAll(dir)
		}
	}
}

// removeCgroups removes the cgroups that a pattern names; their processes have
// ended.
func removeCgroups(pattern string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	cmd := exec.Command("unshare", "--mount", "bash", "-s", "remove", pattern)
	cmd.Stdin = strings.NewReader(nodeScript)
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("remove cgroups %s: %w", pattern, err)
	}
	return nil
}
