package nettest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// HideLegacyIptables lets this machine have no program of iptables-legacy while the test
// runs, as systems have it that come without.
func HideLegacyIptables(t testing.TB) {
	t.Helper()
	Need(t)
	hidden := map[string]bool{}
	for _, name := range []string{"iptables-legacy", "ip6tables-legacy", "iptables-legacy-restore", "ip6tables-legacy-restore"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			t.Fatal(err)
		}
		if hidden[path] {
			continue
		}
		hidden[path] = true
		if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			t.Fatalf("hide %s: %v", path, err)
		}
		t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	}
}
