// Package cri runs pods as a kubelet does, by calls of the CRI to a real containerd
// on nodes of a simulated VPC, with the real plugin, the real agent and the network
// configuration that enipool ships. Which containerd is a matter of PATH: versions 1.6
// and 2.2 pass.
package cri

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// binaries are the folders of what runs on nodes.
type binaries struct {
	ours      string // as they are now
	reference string // those of make tools, which are built here if they are missing
}

var programs = sync.OnceValues(func() (binaries, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return binaries{}, err
	}
	b := binaries{filepath.Join(root, ".build", "cri"), filepath.Join(root, ".build", "cni")}
	builds := [][]string{{"go", "build", "-o", b.ours + "/", "./plugins/enipool", "./plugins/enipool-agent", "./plugins/enipoolctl"}}
	if _, err := os.Stat(filepath.Join(b.reference, "cnitool")); err != nil {
		builds = append(builds, []string{"scripts/tools.sh", b.reference})
	}
	for _, build := range builds {
		cmd := exec.Command(build[0], build[1:]...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("%v: %w\n%s", build, err, out)
		}
	}
	return b, nil
})

// patience is how long anything may take that takes seconds at most on an idle
// machine.
const patience = 60 * time.Second

// eventually waits until done returns nil. It fails the test with done's last error
// if that takes longer than anything should.
func eventually(t testing.TB, what string, done func() error) {
	t.Helper()
	if err := kube.Wait(patience, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
