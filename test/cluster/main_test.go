// Package cluster runs enipool as its users do: a real Kubernetes whose nodes have
// kubelet and containerd on a simulated VPC, and enipool put there by its own image
// and manifests. `make e2e-kube` runs it.
package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
)

func TestMain(m *testing.M) {
	files, err := listenForBrowsers()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	nettest.Isolate(files...)
	os.Exit(m.Run())
}

// need skips the test where it can't run, or where nobody asked for some minutes of
// both processors.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("ENIPOOL_E2E") == "" {
		t.Skip("takes minutes and the whole machine: make e2e-kube runs it")
	}
	nettest.Need(t)
	kube.Need(t)
	kube.NeedNodes(t)
}

// The images of enipool that there are, by tag: that which is installed, and that
// which it is upgraded to.
const (
	first = "first"
	next  = "next"
)

// images builds them and returns the folder that holds them.
var images = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".build", "cluster")
	for _, tag := range []string{first, next} {
		cmd := exec.Command("scripts/image/build.sh", tag, filepath.Join(dir, tag), runtime.GOARCH)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "TAG="+tag)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build image %s: %w\n%s", tag, err, out)
		}
	}
	return dir, nil
})

// archive is where the image with the tag is.
func archive(dir, tag string) string { return filepath.Join(dir, "enipool-"+tag+".tar") }

// program is where a program of the image with the tag is, on every node too.
func program(dir, tag, name string) string { return filepath.Join(dir, tag, runtime.GOARCH, name) }
