package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dieIn); dir != "" {
		die(dir)
	}
	// Installed as a plugin, this binary is one.
	if filepath.Base(os.Args[0]) == "enipool" {
		bePlugin()
	}
	nettest.Isolate()
	useMemory()
	os.Exit(m.Run())
}

// useMemory has the tests' folders in memory where programs can be run from there:
// every change is made to last, which takes a disk a while.
func useMemory() {
	const memory = "/dev/shm"
	f, err := os.CreateTemp(memory, "enipool-*.sh")
	if err != nil {
		return
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("#!/bin/sh\n")
	if errors.Join(err, f.Chmod(0o700), f.Close()) == nil && exec.Command(f.Name()).Run() == nil {
		os.Setenv("TMPDIR", memory)
	}
}

// bePlugin answers as plugins do. Asked for nothing it runs until its input ends.
func bePlugin() {
	if os.Getenv("CNI_COMMAND") == "VERSION" {
		fmt.Println(`{"cniVersion":"1.1.0","supportedVersions":["0.4.0","1.0.0","1.1.0"]}`)
		os.Exit(0)
	}
	fmt.Println("running")
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println("ended")
	os.Exit(0)
}

// plugin is a script that answers as a plugin of the release does.
func plugin(name, release string, versions ...string) string {
	if versions == nil {
		versions = []string{"0.4.0", "1.0.0", "1.1.0"}
	}
	return fmt.Sprintf(`#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion":"1.1.0","supportedVersions":["%s"]}' ;;
*) echo 'CNI %s plugin %s' >&2 ;;
esac
`, strings.Join(versions, `","`), name, release)
}

// write makes a file with the mode.
func write(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// shipped makes a folder with a release of ours, and the reference plugins of
// another release.
func shipped(t testing.TB, release, plugins string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "enipool"), plugin("enipool", release), 0o755)
	for _, name := range []string{"portmap", "bandwidth", "loopback"} {
		write(t, filepath.Join(dir, name), plugin(name, plugins), 0o755)
	}
	return dir
}

// node is a node to install on, in a folder.
type node struct {
	t testing.TB
	Options
	said []string
}

// options are for a node of which one service is there.
func options(root string) Options {
	return Options{BinDir: BinDir, ConfDir: ConfDir, Tree: Tree{Root: root}, System: []SystemFile{
		{Path: "/etc/there/conf.d/enipool.conf", Needs: "/etc/there", Text: "ours\n", Why: "why", Effect: "when"},
		{Path: "/etc/absent/enipool.conf", Needs: "/etc/absent", Text: "ours\n"},
		{Path: "/etc/there/gone.conf", Needs: "/etc/there"},
	}}
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{t: t, Options: options(t.TempDir())}
	n.conflist(chained)
	for _, dir := range []string{"/etc/there", "/run"} {
		if err := os.MkdirAll(n.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *node) conflist(text string) {
	n.t.Helper()
	c, err := ParseConflist([]byte(text))
	if err != nil {
		n.t.Fatal(err)
	}
	n.Conflist = c
}

func (n *node) at(path string) string { return filepath.Join(n.Tree.Root, path) }

func (n *node) say(l Line) { n.said = append(n.said, l.String()) }

// try installs as the command does.
func (n *node) try(from string) error {
	n.said = nil
	n.From = from
	unlock, err := n.Tree.Lock(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	p, err := NewPlan(context.Background(), n.Options)
	if err != nil {
		return err
	}
	for _, l := range p.Lines {
		n.say(l)
	}
	if slices.ContainsFunc(p.Lines, func(l Line) bool { return l.What == MustFix }) {
		return nil
	}
	return p.Apply(context.Background(), n.say)
}

func (n *node) install(from string) {
	n.t.Helper()
	if err := n.try(from); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) uninstall() {
	n.t.Helper()
	n.said = nil
	unlock, err := n.Tree.Lock(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	defer unlock()
	if err := Uninstall(context.Background(), n.Options, n.say); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) publish() string {
	n.t.Helper()
	path, err := n.Tree.Publish(context.Background(), "/run/enipool/node.cache")
	if err != nil {
		n.t.Fatal(err)
	}
	return path
}

// has returns what the node's file holds, "" for none.
func (n *node) has(path string) string {
	n.t.Helper()
	text, err := os.ReadFile(n.at(path))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	return string(text)
}

// holds demands that the node's file holds what the other one does.
func (n *node) holds(path, other string) {
	n.t.Helper()
	want, err := os.ReadFile(other)
	if err != nil {
		n.t.Fatal(err)
	}
	if n.has(path) != string(want) {
		n.t.Errorf("%s is not %s", path, other)
	}
}

// files lists the node's files that outlast a boot.
func (n *node) files() []string {
	n.t.Helper()
	var list []string
	err := filepath.WalkDir(n.Tree.Root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, n.at("/run/")) {
			list = append(list, strings.TrimPrefix(path, n.Tree.Root))
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return list
}

// inode tells one file from another of the same name.
func (n *node) inode(path string) fs.FileInfo {
	n.t.Helper()
	info, err := os.Stat(n.at(path))
	if err != nil {
		n.t.Fatal(err)
	}
	return info
}

// tells demands that a line of the last run holds the text.
func (n *node) tells(text string) {
	n.t.Helper()
	if !slices.ContainsFunc(n.said, func(l string) bool { return strings.Contains(l, text) }) {
		n.t.Errorf("no line with %q in\n%s", text, strings.Join(n.said, "\n"))
	}
}
