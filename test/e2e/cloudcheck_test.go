package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The page for Kubernetes names the command as the next step, whatever the cloud: the simulated
// one has nothing to set right while an agent works with it.
func TestTheSimulatedCloudIsChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "check"})
	s.start()
	s.ready()
	check := exec.Command(filepath.Join(binDir(t), "enipoolctl"), "cloud", "check", "--config", s.confPath())
	var out []byte
	var err error
	s.must(s.node.Do(func() error { out, err = check.CombinedOutput(); return nil }))
	if err != nil || !strings.Contains(string(out), "limits") || strings.Contains(string(out), "To do") {
		t.Errorf("%v\n%s", err, out)
	}
}
