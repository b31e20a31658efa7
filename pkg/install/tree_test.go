package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// link makes a symbolic link on the node.
func link(t testing.TB, root, path, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, filepath.Join(root, path)); err != nil {
		t.Fatal(err)
	}
}

func TestPathsAreFollowedAsOnTheNode(t *testing.T) {
	root := t.TempDir()
	link(t, root, "/opt/cni", "/usr/libexec/cni")
	link(t, root, "/usr/libexec/cni/bin", "../../lib/./cni")
	link(t, root, "/usr/lib/cni/portmap", "/opt/plugins/portmap")
	link(t, root, "/up", "../../../../etc")
	link(t, root, "/loop", "/loop")
	for _, tt := range []struct{ path, at, target string }{
		{"/", "/", "/"},
		{"/etc/none/file", "/etc/none/file", "/etc/none/file"},
		{"/opt/cni/bin/enipool", "/usr/lib/cni/enipool", "/usr/lib/cni/enipool"},
		{"opt//cni/./bin/portmap", "/usr/lib/cni/portmap", "/opt/plugins/portmap"},
		{"/up/passwd", "/etc/passwd", "/etc/passwd"},
		{"/../../etc/passwd", "/etc/passwd", "/etc/passwd"},
		{"/etc/none/..", "/etc", "/etc"},
		{"/loop", "/loop", ""},
		{"/loop/file", "", ""},
	} {
		at, err := Tree{Root: root}.Path(tt.path)
		target, err2 := Tree{Root: root}.Target(tt.path)
		if (err != nil) != (tt.at == "") || err == nil && at != filepath.Join(root, tt.at) {
			t.Errorf("Path(%s) = %s, %v, want %s", tt.path, at, err, tt.at)
		}
		if (err2 != nil) != (tt.target == "") || err2 == nil && target != filepath.Join(root, tt.target) {
			t.Errorf("Target(%s) = %s, %v, want %s", tt.path, target, err2, tt.target)
		}
	}
}

func TestNoPathLeavesTheTree(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		root, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "..", ".", ""})
		path := rapid.Map(rapid.SliceOfN(name, 1, 5), func(s []string) string { return strings.Join(s, "/") })
		absolute := rapid.Map(rapid.Bool(), func(b bool) string { return map[bool]string{true: "/"}[b] })
		for range rapid.IntRange(0, 4).Draw(r, "links") {
			to := absolute.Draw(r, "absolute") + path.Draw(r, "to")
			at, err := Tree{Root: root}.Path(path.Draw(r, "link"))
			if err == nil && to != "" && at != root {
				_ = os.MkdirAll(filepath.Dir(at), 0o755)
				_ = os.Symlink(to, at) // if there is nothing yet
			}
		}
		wanted := path.Draw(r, "path")
		at, err := Tree{Root: root}.Target(wanted)
		if err == nil && at != root && !strings.HasPrefix(at, root+"/") {
			r.Errorf("%s leads to %s", wanted, at)
		}
		// What was followed needs no more following.
		if behind, e := filepath.EvalSymlinks(at); err == nil && e == nil && behind != at {
			r.Errorf("%s leads to %s, and on to %s", wanted, at, behind)
		}
	})
}

func TestANodeWithLinkedFoldersIsInstalledOn(t *testing.T) {
	n := newNode(t)
	link(t, n.Tree.Root, "/opt/cni/bin", "/usr/libexec/cni")
	link(t, n.Tree.Root, "/etc/cni/net.d", "/var/etc/net.d")
	link(t, n.Tree.Root, "/var/lib/enipool", "/srv/enipool")
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	n.publish()
	for _, path := range []string{"/usr/libexec/cni/enipool", "/var/etc/net.d/10-enipool.conflist", "/srv/enipool/install.json"} {
		if n.has(path) == "" {
			t.Errorf("%s is missing", path)
		}
	}
	n.uninstall()
	for _, path := range n.files() {
		if strings.Contains(path, "enipool") && path != "/var/lib/enipool" {
			t.Errorf("%s is left", path)
		}
	}
}

func TestALinkInPlaceOfAProgramIsReplacedAndNotFollowed(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	write(t, n.at("/usr/lib/enipool"), "another", 0o755)
	link(t, n.Tree.Root, "/opt/cni/bin/enipool", "/usr/lib/enipool")
	n.install(from)
	n.holds("/opt/cni/bin/enipool", filepath.Join(from, "enipool"))
	if n.has("/usr/lib/enipool") != "another" {
		t.Error("the link was followed")
	}
}
