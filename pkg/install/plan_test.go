package install

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
)

func TestWhoseProgramANodeHas(t *testing.T) {
	old := plugin("portmap", "v1.5.1", "0.4.0", "1.0.0")
	for _, tt := range []struct {
		name, there string
		ours        bool
		says        string
	}{
		{"none is there", "", true, "installed /opt/cni/bin/portmap v1.6.0"},
		{"one is there that is newer", plugin("portmap", "v1.9.1"), false, "kept      /opt/cni/bin/portmap: it is not of enipool, and its release v1.9.1 is not before our v1.6.0"},
		{"one is there that is of the same release", plugin("portmap", "v1.6.0") + "# other", false, "its release v1.6.0 is not before our v1.6.0"},
		{"one is there that is older", plugin("portmap", "v1.5.9"), true, "installed"},
		{"one is there of an unknown release", plugin("portmap", "version unknown"), false, "can't be told; remove it to get ours"},
		{"one is there that lacks a protocol version", old, true, "installed"},
		{"one is there that is newer and lacks a protocol version", plugin("portmap", "v9.0.0", "1.0.0"), true, "installed"},
		{"something is there that does not run", "no program", true, "installed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			if tt.there != "" {
				write(t, n.at("/opt/cni/bin/portmap"), tt.there, 0o755)
			}
			from := shipped(t, "v0.1.0", "v1.6.0")
			n.install(from)
			n.tells(tt.says)
			if tt.ours {
				n.holds("/opt/cni/bin/portmap", filepath.Join(from, "portmap"))
			} else if n.has("/opt/cni/bin/portmap") != tt.there {
				t.Error("it was replaced")
			}
		})
	}
}

func TestWhatAPersonMustDoFirstIsSaidAndNothingIsDone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(n *node)
		says  string
	}{
		{"a plugin is nowhere", func(n *node) { _ = os.Remove(filepath.Join(n.From, "portmap")) },
			"the network configuration calls portmap, which is neither at /opt/cni/bin/portmap nor in "},
		{"a plugin that is not shipped is too old", func(n *node) {
			_ = os.Remove(filepath.Join(n.From, "portmap"))
			write(t, n.at("/opt/cni/bin/portmap"), plugin("portmap", "v1.5.1", "0.4.0", "1.0.0"), 0o755)
		}, "/opt/cni/bin/portmap does not speak CNI 1.1.0, which the network configuration offers the runtime: put a newer one there, or take 1.1.0 out of cniVersions"},
		{"a plugin that is not shipped does not answer", func(n *node) {
			_ = os.Remove(filepath.Join(n.From, "portmap"))
			write(t, n.at("/opt/cni/bin/portmap"), "#!/bin/sh\necho broken; exit 3\n", 0o755)
		}, "/opt/cni/bin/portmap does not tell which protocol versions it speaks: exit status 3: broken"},
		{"a shipped plugin does not run here", func(n *node) { write(t, filepath.Join(n.From, "portmap"), "no program", 0o755) },
			"/portmap does not run on this node: "},
		{"a plugin is not to be installed and not there", func(n *node) { n.Plugins = []string{"portmap"} },
			"calls bandwidth, which is neither at /opt/cni/bin/bandwidth nor in "},
		{"plugin and agent would not meet", func(n *node) { n.CachePath = "/run/other.cache" },
			"the network configuration has cachePath /run/enipool/node.cache and the agent has cache /run/other.cache: they must be the same"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.From = shipped(t, "v0.1.0", "v1.9.1")
			tt.spoil(n)
			before := strings.Join(n.files(), " ")
			n.install(n.From)
			n.tells("must fix  ")
			n.tells(tt.says)
			if after := strings.Join(n.files(), " "); after != before {
				t.Errorf("it left %s", after)
			}
		})
	}
}

func TestANodeWithoutLoopbackIsWarnedOf(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	if err := os.Remove(filepath.Join(from, "loopback")); err != nil {
		t.Fatal(err)
	}
	n.install(from)
	n.tells("warning   /opt/cni/bin/loopback is missing: without it containerd starts no pod, unless it has use_internal_loopback")
}

func TestPluginsCanBeChosen(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.conflist(`{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"enipool"}]}`)
	write(t, filepath.Join(from, "tuning"), plugin("tuning", "v1.9.1"), 0o755)
	n.Plugins = []string{"tuning"}
	n.install(from)
	if n.has("/opt/cni/bin/tuning") == "" || n.has("/opt/cni/bin/portmap") != "" || n.has("/opt/cni/bin/loopback") != "" {
		t.Errorf("there are %v", n.files())
	}
}

func TestAMissingProgramOfOursIsAnError(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.Plugins = []string{"tuning"}
	if err := n.try(from); err == nil || !strings.Contains(err.Error(), "tuning: no such file or directory; --from names the folder with tuning") {
		t.Errorf("error is %v", err)
	}
	n.Plugins = nil
	if err := n.try(t.TempDir()); err == nil || !strings.Contains(err.Error(), "--from names the folder with enipool") {
		t.Errorf("error is %v", err)
	}
	if got := n.files(); got != nil {
		t.Errorf("it left %v", got)
	}
}

func TestAPluginThatHangsIsNotWaitedForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "portmap")
	write(t, path, "#!/bin/sh\nsleep 600\n", 0o755)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if got := (Tree{}).askProgram(ctx, path); got.err == nil {
		t.Errorf("it answered %+v", got)
	}
}

func TestReleasesAreCompared(t *testing.T) {
	for _, tt := range []struct {
		a, b  string
		older bool
	}{
		{"CNI portmap plugin v1.6.0", "CNI portmap plugin v1.9.1", true},
		{"v1.9.1", "v1.10.0", true},
		{"v1.10.0", "v1.9.1", false},
		{"v1.9.1", "v1.9.1", false},
		{"1.1.1+ds1-3", "v1.1.2", true},
		{"v2.0.0", "v1.99.99", false},
		{"CNI portmap plugin version unknown\nCNI protocol versions supported: 0.4.0, 1.0.0", "v1.9.1", false},
		{"(devel)", "v1.9.1", false},
		{"v1.9.1", "", false},
		{"v99999999999999999999.0.0", "v1.0.0", false},
	} {
		if got := isOlder(findRelease(tt.a), findRelease(tt.b)); got != tt.older {
			t.Errorf("older(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
}

// In an image without a loader and libraries the node's programs find theirs on the
// node.
func TestAProgramOfTheNodeRunsInTheNodesTree(t *testing.T) {
	nettest.Need(t)
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	text, err := os.ReadFile(busybox)
	if err != nil || bytes.Contains(text, []byte("/ld-linux")) {
		t.Skipf("busybox is not a static one: %v", err)
	}
	n := newNode(t)
	write(t, n.at("/only/here/sh"), string(text), 0o755)
	path := n.at("/opt/cni/bin/portmap")
	write(t, path, strings.Replace(plugin("portmap", "v1.2.3"), "/bin/sh", "/only/here/sh", 1), 0o755)
	if got := n.Tree.askProgram(context.Background(), path); got.err != nil || got.release != "v1.2.3" {
		t.Errorf("it answered %+v", got)
	}
}
