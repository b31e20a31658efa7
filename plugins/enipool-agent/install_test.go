package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
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
	if code := runCommand(context.Background(), args, &out, &out); code != 0 {
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
	kept := lastgood.Durable(agentconf.Default().State, "/etc/enipool/agent.yaml")
	kept.Path = filepath.Join(root, kept.Path)
	if err := kept.Keep([]byte("node: n1\n")); err != nil {
		t.Fatal(err)
	}
	seen := agent.Disk{Path: filepath.Join(root, lastgood.Seen(agentconf.Default().State))}
	if err := seen.Save([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if code := runCommand(context.Background(), []string{"uninstall", "--root", root}, &out, &out); code != 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	for _, path := range []string{published, kept.Path, seen.Path, filepath.Join(root, install.StateDir)} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there after it: %v", path, err)
		}
	}
}

// What enipool holds in the kernel goes when nobody needs it any more.
func TestUninstallingTakesEnipoolOutOfTheKernelWhenItsPodsAreGone(t *testing.T) {
	nettest.Need(t)
	owner := eni.Owner{Key: eni.Key{Network: "pods", Container: "web", IfName: "eth0"}, Namespace: "default", Pod: "web"}
	nettest.Run(t, "sh", "-c", strings.NewReplacer("POD", netconf.HostDevice(owner.Key), "ALIAS", netconf.Alias(owner)).Replace(`
		ip rule add priority 512 lookup 100 suppress_prefixlength 31 protocol 70; nft add table inet enipool
		ip link add POD type veth peer name far; ip link set POD alias "ALIAS"`))
	root := t.TempDir()
	uninstall := func() (string, int) {
		var out strings.Builder
		code := runCommand(context.Background(), []string{"uninstall", "--root", root}, &out, &out)
		return out.String(), code
	}
	cache := nodecache.Cache{Path: filepath.Join(root, nodecache.DefaultPath)}
	err := cache.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) {
		return &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	state := func() string { return nettest.Run(t, "sh", "-c", "ip rule; nft list tables") }
	said, code := uninstall()
	if want := "1 pod of enipool lives on this node (default/web): routes, rules and the packet filter stay"; code != 1 || !strings.Contains(said, want) {
		t.Errorf("while a pod lives: exit code %d, %s", code, said)
	}
	if is := state(); !strings.Contains(is, "512:") || !strings.Contains(is, "enipool") {
		t.Errorf("the kernel has\n%s", is)
	}
	nettest.Run(t, "ip", "link", "del", netconf.HostDevice(owner.Key))
	with := root
	root = t.TempDir()
	said, code = uninstall()
	if want := "nobody can tell whether pods of enipool live on this node: node cache is missing"; code != 1 || !strings.Contains(said, want) {
		t.Errorf("without a node cache: exit code %d, %s", code, said)
	}
	if is := state(); !strings.Contains(is, "512:") || !strings.Contains(is, "enipool") {
		t.Errorf("the kernel has\n%s", is)
	}
	root = with
	said, code = uninstall()
	for _, want := range []string{"removed   rule 512: from all lookup 100 suppress_prefixlength 31 proto 70\n", "removed   nftables: remove table inet enipool\n",
		"kept      settings, for what they were before is not known; a reboot resets them: net/ipv4/ip_forward=1\n"} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("exit code %d, not said %q:\n%s", code, want, said)
		}
	}
	if is := state(); strings.Contains(is, "512:") || strings.Contains(is, "enipool") {
		t.Errorf("the kernel has\n%s", is)
	}
	if said, code := uninstall(); code != 0 || said != "ok        nothing of enipool is installed\n" {
		t.Errorf("again: exit code %d, %s", code, said)
	}
}

func TestInstallRefusesLinksThatConnectTheNode(t *testing.T) {
	nettest.Need(t)
	for _, words := range []string{"link add uplink0 type veth peer name uplink1", "addr add 192.0.2.2/24 dev uplink0", "link set uplink0 up", "route add default via 192.0.2.1"} {
		nettest.Run(t, "ip", strings.Fields(words)...)
	}
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", "uplink0") })
	var out strings.Builder
	code := runCommand(context.Background(), []string{"install", "--dry-run", "--root", t.TempDir(), "--eni-links", "*"}, &out, &out)
	if want := "--eni-links *: must not match uplink0"; code != 2 || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

// "Nothing was changed" is true of folders too, also of those that the lock needs.
func TestARefusedInstallationLeavesNoFolder(t *testing.T) {
	root := t.TempDir()
	conf := filepath.Join(root, install.ConfDir)
	if err := os.MkdirAll(conf, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(conf, "05-cilium.conflist"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	code := runCommand(context.Background(), []string{"install", "--root", root, "--from", plugins(t, "enipool", "portmap", "bandwidth", "loopback")}, &out, &out)
	if code != 1 || !strings.Contains(out.String(), "nothing was changed") {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 || entries[0].Name() != "etc" {
		t.Errorf("the node has %v: %v", entries, err)
	}
}

func TestARootThatIsNotThereIsRefused(t *testing.T) {
	root := filepath.Join(t.TempDir(), "host")
	for _, command := range [][]string{{"install", "--dry-run"}, {"install"}, {"uninstall"}} {
		var out strings.Builder
		code := runCommand(context.Background(), append(command, "--root", root), &out, &out)
		if want := "--root " + root + ": there is no such folder: it must be where the node's file system is mounted"; code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%v: exit code %d: %s", command, code, &out)
		}
	}
	if _, err := os.Stat(root); err == nil {
		t.Error("it was made")
	}
}
