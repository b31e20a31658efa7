package install

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	"golang.org/x/sys/unix"
)

// mount puts a file system of its own at the node's folder.
func (n *node) mount(path, options string, flags uintptr) {
	n.t.Helper()
	if err := os.MkdirAll(n.at(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := unix.Mount("enipool-test", n.at(path), "tmpfs", flags, options); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = unix.Unmount(n.at(path), unix.MNT_DETACH) })
}

func TestAFullDiskLeavesTheOldPrograms(t *testing.T) {
	nettest.Need(t)
	n := newNode(t)
	n.conflist(small)
	n.mount(BinDir, "size=64k", 0)
	v1, v2 := few(t, "v0.1.0", "v1.9.1"), few(t, "v0.2.0", "v1.9.1")
	n.install(v1)
	write(t, filepath.Join(v2, "enipool"), plugin("enipool", "v0.2.0")+strings.Repeat("#", 1<<20), 0o755)
	err := n.try(v2)
	if err == nil || !strings.Contains(err.Error(), "write /opt/cni/bin/enipool: ") || !strings.Contains(err.Error(), "no space left on device; make room there") {
		t.Errorf("error is %v", err)
	}
	n.whole(v1)
	n.holds("/opt/cni/bin/enipool", filepath.Join(v1, "enipool"))
	if _, err := os.Stat(n.at("/opt/cni/bin/.enipool" + unfinished)); !os.IsNotExist(err) {
		t.Errorf("half a file is left: %v", err)
	}
}

func TestAReadOnlyFolderIsNamed(t *testing.T) {
	nettest.Need(t)
	n := newNode(t)
	n.mount(BinDir, "", unix.MS_RDONLY)
	err := n.try(shipped(t, "v0.1.0", "v1.9.1"))
	if err == nil || !strings.Contains(err.Error(), "write /opt/cni/bin/enipool: ") || !strings.Contains(err.Error(), "read-only file system; mount it writable") {
		t.Errorf("error is %v", err)
	}
	if n.has(stagedPath) != "" {
		t.Error("the configuration is staged without its plugin")
	}
}

func TestAFolderInPlaceOfAFileIsNamed(t *testing.T) {
	n := newNode(t)
	n.System[0].Path = "/etc/there/conf.d"
	if err := os.MkdirAll(n.at("/etc/there/conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := n.try(shipped(t, "v0.1.0", "v1.9.1"))
	if err == nil || !strings.Contains(err.Error(), "write /etc/there/conf.d: it is a folder; remove it") {
		t.Errorf("error is %v", err)
	}
}

// obey makes root obey the modes of files, for the rest of the test.
func obey(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had [2]unix.CapUserData
	if err := unix.Capget(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	without := had
	without[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &without[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Capset(&header, &had[0]); err != nil {
			t.Error(err) // and the thread stays locked, so that it ends with the test
			return
		}
		runtime.UnlockOSThread()
	})
}

func TestWhoMayNotIsToldToBeRoot(t *testing.T) {
	n := newNode(t)
	obey(t)
	if err := os.Chmod(n.at("/"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := n.try(shipped(t, "v0.1.0", "v1.9.1")); err == nil || !strings.Contains(err.Error(), "run it as root") {
		t.Errorf("error is %v", err)
	}
}
