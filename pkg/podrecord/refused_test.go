package podrecord

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/mounts"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// Whoever reads that a record can't be written reads which file system that is, and what to do.
func TestAFileSystemThatRefusesARecordIsNamed(t *testing.T) {
	nettest.Need(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	f, r := Beside(filepath.Join(dir, "node.cache")), sample("a")
	if err := f.Write(r); err != nil {
		t.Fatal(err)
	}
	check := func(did string, err error, want string) {
		t.Helper()
		want = strings.ReplaceAll(strings.ReplaceAll(want, "FILE", f.pathOf(r.Key)), "DIR", dir)
		if err == nil || !errors.As(err, new(*mounts.RefusedError)) {
			t.Errorf("%s: %v", did, err)
		} else if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s: %s", did, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	check("write on a full disk", f.Write(r),
		"write record of pods/a/eth0 to FILE: no space left on device; file system tmpfs at DIR is full: free space there (df DIR)")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	const readOnly = ": read-only file system; file system tmpfs at DIR is mounted read-only: mount -o remount,bind,rw DIR"
	check("write", f.Write(r), "write record of pods/a/eth0 to FILE"+readOnly)
	check("remove", f.Remove(r.Key), "remove record of pods/a/eth0 at FILE"+readOnly)
	_, err := f.Lock(t.Context())
	check("lock", err, "open lock of pod records: open DIR/node.cache.pods/lock"+readOnly)
}

func TestMain(m *testing.M) { nettest.Main(m) }
