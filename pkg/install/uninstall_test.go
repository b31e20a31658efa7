package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUninstallingTakesAllAndDoesSoOnce(t *testing.T) {
	n := newNode(t)
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	n.publish()
	write(t, n.at("/opt/cni/bin/.enipool"+unfinished), "half", 0o600)
	n.uninstall()
	if got := n.files(); got != nil {
		t.Errorf("left over: %v", got)
	}
	if diff := cmp.Diff([]string{"removed   " + stagedPath, "removed   " + conflistPath}, n.said[:2]); diff != "" {
		t.Errorf("it does not begin with the network configuration:\n%s", diff)
	}
	n.uninstall()
	if n.said != nil {
		t.Errorf("a second time it says %v", n.said)
	}
	if _, err := os.Stat(n.at(StateDir)); !os.IsNotExist(err) {
		t.Errorf("its folder is there: %v", err)
	}
}

func TestUninstallingLeavesWhatIsNotOurs(t *testing.T) {
	n := newNode(t)
	write(t, n.at("/opt/cni/bin/portmap"), plugin("portmap", "v1.6.0"), 0o755)   // older: we replace it
	write(t, n.at("/opt/cni/bin/loopback"), plugin("loopback", "v2.0.0"), 0o755) // newer: we don't
	write(t, n.at("/opt/cni/bin/flannel"), "another", 0o755)
	write(t, n.at("/etc/cni/net.d/20-other.conflist"), `{"plugins":[{"type":"flannel"}]}`, 0o644)
	from := shipped(t, "v0.1.0", "v1.9.1")
	n.install(from)
	n.holds("/opt/cni/bin/portmap", filepath.Join(from, "portmap"))
	n.tells("kept      /opt/cni/bin/loopback: it is not of enipool, and its release v2.0.0 is not before our v1.9.1")
	n.install(shipped(t, "v0.2.0", "v1.9.2"))
	n.publish()
	write(t, n.at("/opt/cni/bin/bandwidth"), "another", 0o755) // by somebody, since
	n.uninstall()
	want := []string{"/etc/cni/net.d/20-other.conflist", "/opt/cni/bin/bandwidth", "/opt/cni/bin/flannel", "/opt/cni/bin/loopback", "/opt/cni/bin/portmap"}
	if diff := cmp.Diff(want, n.files()); diff != "" {
		t.Error(diff)
	}
	n.tells("kept      /opt/cni/bin/bandwidth: it was changed after it had been installed")
	n.tells("kept      /opt/cni/bin/portmap: there was another one before, which others may need")
}

func TestProgramsThatOthersCallNowStay(t *testing.T) {
	n := newNode(t)
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	write(t, n.at("/etc/cni/net.d/20-other.conflist"), `{"plugins":[{"type":"other"},{"type":"portmap"}]}`, 0o644)
	n.uninstall()
	want := []string{"/etc/cni/net.d/20-other.conflist", "/opt/cni/bin/loopback", "/opt/cni/bin/portmap"}
	if diff := cmp.Diff(want, n.files()); diff != "" {
		t.Error(diff)
	}
	n.tells("kept      /opt/cni/bin/portmap: /etc/cni/net.d/20-other.conflist needs it")
}

func TestWithoutMemoryProgramsStay(t *testing.T) {
	n := newNode(t)
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	n.publish()
	write(t, n.at(manifestPath), "{", 0o644)
	n.uninstall()
	n.tells("warning   read " + manifestPath)
	n.tells("kept      /opt/cni/bin/enipool: nothing tells how it came there")
	want := []string{"/opt/cni/bin/bandwidth", "/opt/cni/bin/enipool", "/opt/cni/bin/loopback", "/opt/cni/bin/portmap"}
	if diff := cmp.Diff(want, n.files()); diff != "" {
		t.Error(diff)
	}
	// The next installation takes our own over again.
	n.install(shipped(t, "v0.2.0", "v1.9.1"))
	n.tells("installed /opt/cni/bin/enipool")
	n.tells("kept      /opt/cni/bin/portmap")
}

func TestAllPlacesOfTheConfigurationAreCleared(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.install(from)
	n.publish()
	n.BinDir, n.ConfDir = "/usr/libexec/cni", "/etc/other.d"
	n.install(from)
	if got := n.publish(); got != "/etc/other.d/10-enipool.conflist" {
		t.Errorf("it was published at %s", got)
	}
	n.BinDir, n.ConfDir = BinDir, ConfDir
	n.uninstall()
	if got := n.files(); got != nil {
		t.Errorf("left over: %v", got)
	}
}

func TestPodsThatWouldBeStrandedAreCounted(t *testing.T) {
	n := newNode(t)
	makeCache(t, n.at("/run/enipool/node.cache"), "10.0.0.21", "10.0.0.22")
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	n.publish()
	n.uninstall()
	n.tells("warning   pods use 2 addresses of enipool")
}
