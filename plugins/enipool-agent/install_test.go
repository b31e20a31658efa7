package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/nettest"
)

// plugins makes a folder with programs that answer as plugins do.
func plugins(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		text := "#!/bin/sh\necho '{\"supportedVersions\": [\"0.4.0\", \"1.0.0\", \"1.1.0\"]}'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhatTheCommandInstallsTheAgentPublishes(t *testing.T) {
	root := t.TempDir()
	var out strings.Builder
	args := []string{"install", "--root", root, "--from", plugins(t, "enipool", "portmap", "bandwidth", "loopback")}
	if code := run(context.Background(), args, &out, &out); code != 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	published := filepath.Join(root, "/etc/cni/net.d/10-enipool.conflist")
	if _, err := os.Stat(published); !os.IsNotExist(err) {
		t.Errorf("it is there before the agent: %v", err)
	}
	path, err := install.Tree{Root: root}.Publish(context.Background(), "/run/enipool/node.cache")
	if err != nil || filepath.Join(root, path) != published {
		t.Errorf("the agent published %q: %v", path, err)
	}
	if code := run(context.Background(), []string{"uninstall", "--root", root}, &out, &out); code != 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	if _, err := os.Stat(published); !os.IsNotExist(err) {
		t.Errorf("it is there after it: %v", err)
	}
}

func TestInstallRefusesLinksThatConnectTheNode(t *testing.T) {
	nettest.Need(t)
	for _, words := range []string{"link add uplink0 type veth peer name uplink1", "addr add 192.0.2.2/24 dev uplink0", "link set uplink0 up", "route add default via 192.0.2.1"} {
		nettest.Run(t, "ip", strings.Fields(words)...)
	}
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", "uplink0") })
	var out strings.Builder
	code := run(context.Background(), []string{"install", "--check-only", "--root", t.TempDir(), "--eni-links", "*"}, &out, &out)
	if want := "--eni-links *: must not match uplink0"; code != 2 || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d: %s", code, &out)
	}
}
