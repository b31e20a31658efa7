package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/isolate/sandbox"
	"golang.org/x/sys/unix"
)

// Assets returns the folder that holds etcd, kube-apiserver, kubectl and the other
// programs; the KUBEBUILDER_ASSETS of controller-runtime's envtest. Whether they
// have been built is not looked at.
func Assets() (string, error) { return folderOf("assets") }

// Specs returns the folder that holds kube-proxy, CoreDNS, Kubernetes' own specs (e2e.test,
// agnhost) and ginkgo, which runs them. Whether they have been built is not looked at.
func Specs() (string, error) { return folderOf("specs") }

func folderOf(what string) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(root, "scripts", "kube.sh"), what).Output()
	if err != nil {
		return "", fmt.Errorf("ask scripts/kube.sh for its folder of %s: %w", what, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// root is the folder of this project: tests run in the folder of their package.
func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "kube.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("find scripts/kube.sh: neither here nor in a folder above")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// Need skips the test where Kubernetes has not been built. Nothing is built here:
// that takes minutes. With ENIPOOL_KUBE set the test fails instead.
func Need(t testing.TB) {
	t.Helper()
	missing(t, controlPlane())
}

// NeedNodes skips the test where there can be no nodes: those want root and the
// Debian packages containerd, runc and busybox-static. With ENIPOOL_KUBE set the
// test fails instead.
func NeedNodes(t testing.TB) {
	t.Helper()
	missing(t, nodes())
}

func missing(t testing.TB, reason error) {
	t.Helper()
	switch {
	case reason == nil:
	case os.Getenv("ENIPOOL_KUBE") != "":
		t.Fatal(reason)
	default:
		t.Skip(reason)
	}
}

func controlPlane() error {
	bin, err := Assets()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(bin, "kube-apiserver")); err != nil {
		return fmt.Errorf("needs Kubernetes: scripts/kube.sh build makes it in some minutes: %w", err)
	}
	return nil
}

func nodes() error {
	if os.Geteuid() != 0 || sandbox.InUserNamespace() {
		return errors.New("needs root: a node mounts, makes cgroups and runs containers")
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &fs); err != nil {
		return fmt.Errorf("look at %s: %w", os.TempDir(), err)
	}
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return fmt.Errorf("needs a TMPDIR that containers can have overlays on: %s is on one itself", os.TempDir())
	}
	for _, need := range []struct{ program, pkg string }{{"containerd", "containerd"}, {"ctr", "containerd"}, {"runc", "runc"}, {"busybox", "busybox-static"}} {
		if _, err := exec.LookPath(need.program); err != nil {
			return fmt.Errorf("needs the Debian package %s: %w", need.pkg, err)
		}
	}
	return nil
}
