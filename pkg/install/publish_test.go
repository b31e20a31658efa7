package install

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// makeCache makes a node cache of this boot, with a pod for each address.
func makeCache(t *testing.T, path string, pods ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}}}
	s.ENIs = []eni.Interface{{ID: "eni-a", Device: "eth0", MTU: 1500,
		V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}}}
	for _, pod := range pods {
		s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr(pod), State: eni.Used,
			Owner: &eni.Owner{Key: eni.Key{Network: "enipool", Container: "c" + strings.ReplaceAll(pod, ".", ""), IfName: "eth0"}}})
	}
	err := nodecache.Cache{Path: path}.Replace(context.Background(), func(*ipam.State, error) (*ipam.State, error) { return s, nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestPublishingIsDoneOnceAndPutsBackWhatGotLost(t *testing.T) {
	n := newNode(t)
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	if got := n.publish(); got != conflistPath {
		t.Errorf("it wrote %q", got)
	}
	if n.has(conflistPath) != chained || n.inode(conflistPath).Mode() != 0o600 {
		t.Error("it is not what was staged")
	}
	if got := n.publish(); got != "" {
		t.Errorf("a second time it wrote %q", got)
	}
	if err := os.Remove(n.at(conflistPath)); err != nil {
		t.Fatal(err)
	}
	if got := n.publish(); got != conflistPath {
		t.Errorf("it wrote %q", got)
	}
}

func TestPublishingSaysWhyItCanNot(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(n *node)
		want  string
	}{
		{"nothing is installed", func(n *node) { n.uninstall() }, "no network configuration is staged"},
		{"the conflist is for another cache", func(n *node) {
			n.conflist(strings.Replace(chained, "/run/enipool/node.cache", "/run/other/node.cache", 1))
			n.install(n.From)
		}, "cachePath /run/other/node.cache and the agent has cache /run/enipool/node.cache"},
		{"the folder is not mounted", func(n *node) { _ = os.RemoveAll(n.at(ConfDir)) }, "there is no folder /etc/cni/net.d; mount"},
		{"the memory is gone", func(n *node) { _ = os.Remove(n.at(manifestPath)) }, "where to is not known; run enipool-agent install again"},
		{"the memory is damaged", func(n *node) { write(t, n.at(manifestPath), "{", 0o644) }, "install.json: unexpected end"},
		{"the staged file is damaged", func(n *node) { write(t, n.at(stagedPath), "{", 0o644) }, "read network configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.install(shipped(t, "v0.1.0", "v1.9.1"))
			tt.spoil(n)
			_, err := n.Tree.Publish(context.Background(), "/run/enipool/node.cache")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
			if n.has(conflistPath) != "" {
				t.Error("it is there all the same")
			}
		})
	}
}

func TestPublishingOnANodeWithoutInstallationLeavesNothing(t *testing.T) {
	n := newNode(t)
	if _, err := n.Tree.Publish(context.Background(), "/run/enipool/node.cache"); !errors.Is(err, ErrNotStaged) {
		t.Errorf("error is %v", err)
	}
	if got := n.files(); got != nil {
		t.Errorf("left over: %v", got)
	}
}

func TestAConfigurationOfAnotherBootIsWithdrawn(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	makeCache(t, n.at("/run/enipool/node.cache"))
	n.install(from)
	n.publish()
	n.install(from)
	if n.has(conflistPath) == "" {
		t.Fatal("it is gone though the agent is at work")
	}
	if err := os.RemoveAll(n.at("/run/enipool")); err != nil { // a reboot empties /run
		t.Fatal(err)
	}
	n.install(from)
	n.tells("withdrew  " + conflistPath + ": node cache is missing")
	if n.has(conflistPath) != "" {
		t.Error("it is there, and the node Ready")
	}
	if n.publish() != conflistPath {
		t.Error("the agent can't publish it again")
	}
}

func TestAConfigurationStaysWhereThePoolCanNotBeSeen(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.install(from)
	n.publish()
	if err := os.Remove(n.at("/run")); err != nil { // not mounted
		t.Fatal(err)
	}
	n.install(from)
	if n.has(conflistPath) == "" {
		t.Error("it is gone")
	}
}
