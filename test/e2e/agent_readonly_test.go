package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/status"
	"golang.org/x/sys/unix"
)

// A file system with errors becomes read-only under the agent: the node looked well, and no
// pod could start on it. Pods that run go on, and all is well when it can be written again.
func TestANodeWhoseCacheIsOnAReadOnlyFileSystemIsNotReadyUntilItCanBeWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "readonly", limits: tiny})
	s.configure("resync: 1h", "cloud.describe: 1h")
	folder := filepath.Dir(s.cache.Path)
	s.must(os.MkdirAll(folder, 0o700))
	s.must(unix.Mount(folder, folder, "", unix.MS_BIND, ""))
	t.Cleanup(func() { s.must(unix.Unmount(folder, unix.MNT_DETACH)) })
	agent := s.start()
	s.ready()
	s.add("a")
	s.eventually("nobody writes a file of it at this moment", func() error { // else it is busy
		return unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	})
	todo := "mounted read-only: mount -o remount,bind,rw " + folder
	s.told("a cache that can't be written", func(st status.Status) bool {
		return !st.Ready && strings.Contains(st.Problem, todo)
	})
	agent.says(todo)
	if err := s.try("ADD", "b", 0); err == nil || !strings.Contains(err.Error(), todo) {
		t.Errorf("ADD: %v", err)
	}
	s.reach(internet4, "a")
	if out, err := s.ctl("pool", "check"); err == nil || !strings.Contains(out, "must fix: no pod can start or end") || !strings.Contains(out, todo) {
		t.Errorf("pool check: %v\n%s", err, out)
	}
	s.must(unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	s.told("a cache that can be written", func(st status.Status) bool { return st.Ready && st.Problem == "" })
	s.add("c")
	s.reach(internet4, "a", "c")
}
