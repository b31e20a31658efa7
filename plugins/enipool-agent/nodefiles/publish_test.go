package nodefiles

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/install"
)

// stage writes what install leaves for the agent.
func stage(t *testing.T, root, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, install.StateDir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheNetworkConfigurationIsPublishedWhenPodsGetAddresses(t *testing.T) {
	root := t.TempDir()
	var log bytes.Buffer
	p := &Publisher{tree: install.Tree{Root: root}, cache: "/run/enipool/node.cache", log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Unix(1000, 0)
	look := func() string {
		log.Reset()
		now = now.Add(lookAgain)
		p.publishReady(t.Context(), now)
		return log.String()
	}
	if text := look(); !strings.Contains(text, "staged none") || look() != "" {
		t.Errorf("nothing is staged, which is said once: %s", text)
	}
	folder := filepath.Join(root, install.ConfDir)
	for _, dir := range []string{folder, filepath.Join(root, install.StateDir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stage(t, root, "install.json", []byte(`{"conflists": ["`+install.ConfDir+`/10-enipool.conflist"]}`))
	stage(t, root, "10-enipool.conflist", install.DefaultConflist())
	path := filepath.Join(folder, "10-enipool.conflist")
	for range 2 { // a lost one comes back
		if text := look(); !strings.Contains(text, "published; the node can turn Ready") {
			t.Errorf("log: %s", text)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, install.DefaultConflist()) {
			t.Errorf("published: %s %v", got, err)
		}
		if text := look(); text != "" {
			t.Errorf("all is in place, and it says %s", text)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		p.publishReady(t.Context(), now) // too soon to look
		if _, err := os.Stat(path); err == nil {
			t.Error("it was looked at again at once")
		}
	}
	stage(t, root, "10-enipool.conflist", []byte("{"))
	if text := look(); !strings.Contains(text, "can't be published") || look() != "" {
		t.Errorf("a broken one is said once: %s", text)
	}
}

// published is a publisher of a node on which all is in place, how it looks again, and its folder.
func published(t *testing.T) (look func() string, folder string) {
	root := t.TempDir()
	folder = filepath.Join(root, install.ConfDir)
	for _, dir := range []string{folder, filepath.Join(root, install.StateDir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stage(t, root, "install.json", []byte(`{"conflists": ["`+install.ConfDir+`/10-enipool.conflist"]}`))
	stage(t, root, "10-enipool.conflist", install.DefaultConflist())
	var log bytes.Buffer
	p := &Publisher{tree: install.Tree{Root: root}, cache: "/run/enipool/node.cache", log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Unix(1000, 0)
	look = func() string {
		log.Reset()
		now = now.Add(lookAgain)
		p.publishReady(t.Context(), now)
		return log.String()
	}
	if text := look(); !strings.Contains(text, "can turn Ready") {
		t.Fatalf("log: %s", text)
	}
	return look, folder
}

// Cilium renames the configurations of others as soon as they appear, unless it is told not to.
func TestAPluginThatRemovesOurConfigurationEachTimeIsToldOnce(t *testing.T) {
	look, folder := published(t)
	var all string
	for range 360 { // an hour
		if err := os.Rename(filepath.Join(folder, "10-enipool.conflist"), filepath.Join(folder, "10-enipool.conflist.cilium_bak")); err != nil {
			t.Fatal(err)
		}
		all += look()
	}
	if strings.Count(all, "is removed again and again") != 1 || strings.Count(all, "\n") > 5 {
		t.Errorf("log of an hour:\n%s", all)
	}
	for range 61 { // it stays
		look()
	}
	if err := os.Remove(filepath.Join(folder, "10-enipool.conflist")); err != nil {
		t.Fatal(err)
	}
	if text := look(); !strings.Contains(text, "can turn Ready") {
		t.Errorf("one that got lost later: %s", text)
	}
}

func TestAnotherPluginsConfigurationThatComesFirstIsTold(t *testing.T) {
	look, folder := published(t)
	rival := filepath.Join(folder, "05-cilium.conflist")
	if err := os.WriteFile(rival, []byte(`{"cniVersion": "1.0.0", "name": "cilium", "plugins": [{"type": "cilium-cni"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00-notes.txt", "99-other.conf"} { // runtimes pass over them
		if err := os.WriteFile(filepath.Join(folder, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text := look(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "first="+install.ConfDir+"/05-cilium.conflist") {
		t.Errorf("log: %s", text)
	}
	if text := look(); text != "" {
		t.Errorf("told twice: %s", text)
	}
	if err := os.Remove(rival); err != nil {
		t.Fatal(err)
	}
	if text := look(); !strings.Contains(text, "network configuration of enipool again") || look() != "" {
		t.Errorf("log: %s", text)
	}
}
