package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/install"
)

// Who asks for the fast path on a kernel that is too old for it is told, and nobody else.
func TestInstallTellsOfAKernelTooOldForTheFastPath(t *testing.T) {
	for _, tt := range []struct {
		release string
		path    agentconf.Switch
		told    bool
	}{
		{"5.15.0-91-generic", agentconf.Auto, true},
		{"6.8.0-45-generic", agentconf.Auto, true},
		{"6.9.12", agentconf.Auto, true},
		{"6.10.0", agentconf.Auto, false},
		{"6.18.3-cloud", agentconf.Auto, false},
		{"7.0.1", agentconf.Auto, false},
		{"6.8.0-45-generic", agentconf.Off, false},
		{"unknown", agentconf.Auto, false},
	} {
		conf := agentconf.Default()
		conf.FastPath = tt.path
		lines := fastPathLines(conf, tt.release)
		if (len(lines) > 0) != tt.told {
			t.Errorf("%s: %q, want a line: %v", tt.release, lines, tt.told)
		}
		for _, l := range lines {
			if l.What != install.Warning || !strings.Contains(l.Text, tt.release) {
				t.Errorf("%s: %s; it must not keep anybody from installing", tt.release, l)
			}
		}
	}
	if lines := fastPathLines(agentconf.Default(), "5.4.0"); lines != nil {
		t.Errorf("without a word of it in the configuration: %q", lines)
	}
}

// The command knows what the configuration asks for, and which kernel runs.
func TestInstallReadsWhetherTheFastPathIsWanted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, []byte("fastPath: auto\nsnat: false\ncloud: {endpoint: \"unix:///run/vpc.sock\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := installFlags{nodeFlags: nodeFlags{root: dir, binDir: install.BinDir, confDir: install.ConfDir}, config: file}
	if _, _, conf, err := f.readFlags(); err != nil || conf.FastPath != agentconf.Auto {
		t.Errorf("%v, %v; want that it is asked for", conf.FastPath, err)
	}
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if got := kernelRelease(); got != strings.TrimSpace(string(text)) {
		t.Errorf("the kernel is %q, want %q", got, text)
	}
}
