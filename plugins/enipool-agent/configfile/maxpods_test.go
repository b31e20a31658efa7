package configfile

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

func TestTheNodesPodsAreWhatTheFileTheClusterOrTheKubeletSays(t *testing.T) {
	conf := agentconf.Default()
	conf.MaxPods.KubeletConfig = filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(conf.MaxPods.KubeletConfig, []byte("maxPods: 50"), 0o600); err != nil {
		t.Fatal(err)
	}
	limit := newReload(conf, io.Discard).limit
	expect := func(want int, from string) {
		t.Helper()
		if n, source := limit.current(); n != want || source != from {
			t.Errorf("%d from %q, want %d from %q", n, source, want, from)
		}
	}
	expect(50, conf.MaxPods.KubeletConfig)
	told, known := 0, false
	limit.cluster = func() (int, bool) { return told, known }
	expect(50, conf.MaxPods.KubeletConfig)
	known = true
	expect(50, conf.MaxPods.KubeletConfig) // a Node that allows none is not one yet
	told = 30
	expect(30, "allocatable of the Node")
	limit.setConf(agentconf.MaxPods{Fixed: 7})
	expect(7, "maxPods of the agent's configuration")
}
