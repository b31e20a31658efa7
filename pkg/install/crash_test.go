package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A child process that is to be killed midway finds in its environment the folder of
// the node, what to do on it, and before which change it dies.
const (
	dieIn   = "ENIPOOL_TEST_DIE_IN"
	dieDo   = "ENIPOOL_TEST_DIE_DO"
	dieFrom = "ENIPOOL_TEST_DIE_FROM"
	dieAt   = "ENIPOOL_TEST_DIE_AT"
)

// small is a network configuration with few files, because each change is tried.
const small = `{"cniVersion":"1.0.0","name":"small","plugins":[{"type":"enipool"},{"type":"portmap"}]}`

// few is a release of ours with little in it.
func few(t *testing.T, release, plugins string) string {
	dir := shipped(t, release, plugins)
	for _, name := range []string{"bandwidth", "loopback"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// die is the child: it installs, publishes or uninstalls, and is killed by the
// kernel before the change with the number.
func die(root string) {
	at, err := strconv.Atoi(os.Getenv(dieAt))
	o := options(root)
	o.From = os.Getenv(dieFrom)
	o.Tree.step = func(string) error {
		if at--; at < 0 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	o.Conflist, _ = ParseConflist([]byte(small))
	n := &node{Options: o}
	if err == nil {
		switch os.Getenv(dieDo) {
		case "install":
			err = n.try(o.From)
		case "publish":
			_, err = o.Tree.Publish(context.Background(), "/run/enipool/node.cache")
		case "uninstall":
			err = Uninstall(context.Background(), o, n.say)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// killed runs the child and tells whether it came to its end before the change.
func killed(t *testing.T, n *node, do, from string, at int) bool {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), dieIn+"="+n.Tree.Root, dieDo+"="+do, dieFrom+"="+from, dieAt+"="+strconv.Itoa(at))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	t.Fatalf("change %d: %v: %s", at, err, out)
	return false
}

// shared is a node with another's older portmap, and an outdated release of ours at
// work.
func shared(t *testing.T, from string) *node {
	n := newNode(t)
	n.conflist(small)
	write(t, n.at("/opt/cni/bin/portmap"), plugin("portmap", "v1.0.0"), 0o755)
	write(t, n.at("/opt/cni/bin/flannel"), "another", 0o755)
	makeCache(t, n.at("/run/enipool/node.cache"))
	n.install(from)
	n.publish()
	return n
}

// whole demands that no file that somebody reads is half a file.
func (n *node) whole(allowed ...string) {
	n.t.Helper()
	var texts []string
	for _, dir := range allowed {
		for _, name := range []string{"enipool", "portmap"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				n.t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
	}
	texts = append(texts, "another", plugin("portmap", "v1.0.0"), "ours\n", small)
	for _, path := range n.files() {
		if strings.HasSuffix(path, unfinished) || path == manifestPath {
			continue
		}
		if !slices.Contains(texts, n.has(path)) {
			n.t.Errorf("%s is neither old nor new", path)
		}
	}
	if _, err := n.Tree.readManifest(); err != nil {
		n.t.Error(err)
	}
}

func TestAnInstallationKilledAnywhereIsCompletedByTheNext(t *testing.T) {
	v1, v2 := few(t, "v0.1.0", "v1.6.0"), few(t, "v0.2.0", "v1.9.1")
	at := 0
	for ; ; at++ {
		n := shared(t, v1)
		if !killed(t, n, "install", v2, at) {
			break
		}
		n.whole(v1, v2)
		if n.has(conflistPath) != small {
			t.Errorf("change %d: the published configuration changed", at)
		}
		n.install(v2)
		for _, name := range []string{"enipool", "portmap"} {
			n.holds("/opt/cni/bin/"+name, filepath.Join(v2, name))
		}
		want := []string{conflistPath, "/etc/there/conf.d/enipool.conf", "/opt/cni/bin/enipool", "/opt/cni/bin/flannel",
			"/opt/cni/bin/portmap", stagedPath, manifestPath}
		if diff := cmp.Diff(want, n.files()); diff != "" {
			t.Errorf("change %d: %s", at, diff)
		}
	}
	if at < 12 {
		t.Errorf("there were only %d changes to be killed before", at)
	}
}

// What is uninstalled in the midst of an installation is what that has put there so
// far, and nothing of others.
func TestAnInstallationKilledAnywhereIsUninstalledWhole(t *testing.T) {
	from := few(t, "v0.1.0", "v1.6.0")
	for at := 0; ; at++ {
		n := newNode(t)
		n.conflist(small)
		write(t, n.at("/opt/cni/bin/portmap"), plugin("portmap", "v1.0.0"), 0o755)
		write(t, n.at("/opt/cni/bin/flannel"), "another", 0o755)
		if !killed(t, n, "install", from, at) {
			break
		}
		n.whole(from)
		if n.has(conflistPath) != "" {
			t.Errorf("change %d: a configuration was published", at)
		}
		n.uninstall()
		if diff := cmp.Diff([]string{"/opt/cni/bin/flannel", "/opt/cni/bin/portmap"}, n.files()); diff != "" {
			t.Errorf("change %d: %s", at, diff)
		}
	}
}

func TestAPublicationKilledAnywhereIsDoneByTheNext(t *testing.T) {
	from := few(t, "v0.1.0", "v1.6.0")
	for at := 0; ; at++ {
		n := newNode(t)
		n.conflist(small)
		n.install(from)
		if !killed(t, n, "publish", from, at) {
			break
		}
		if n.has(conflistPath) != "" {
			t.Errorf("change %d: it is there", at)
		}
		if n.publish() != conflistPath || len(n.files()) != 6 {
			t.Errorf("change %d: afterwards there are %v", at, n.files())
		}
	}
}

func TestAnUninstallationKilledAnywhereIsCompletedByTheNext(t *testing.T) {
	from := few(t, "v0.1.0", "v1.6.0")
	for at := 0; ; at++ {
		n := shared(t, from)
		if !killed(t, n, "uninstall", from, at) {
			break
		}
		n.whole(from)
		n.uninstall()
		if diff := cmp.Diff([]string{"/opt/cni/bin/flannel", "/opt/cni/bin/portmap"}, n.files()); diff != "" {
			t.Errorf("change %d: %s", at, diff)
		}
	}
}

// A change that fails leaves the file as it was, and nothing beside it.
func TestAChangeThatFailsLeavesNothingHalf(t *testing.T) {
	v1, v2 := few(t, "v0.1.0", "v1.6.0"), few(t, "v0.2.0", "v1.9.1")
	for at := 0; ; at++ {
		n := shared(t, v1)
		left := at
		n.Tree.step = func(string) error {
			if left--; left == -1 {
				return syscall.ENOSPC
			}
			return nil
		}
		err := n.try(v2)
		n.Tree.step = nil
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(), "no space left on device; make room there and run it again") {
			t.Errorf("error is %v", err)
		}
		n.whole(v1, v2)
		if i := slices.IndexFunc(n.files(), func(p string) bool { return strings.HasSuffix(p, unfinished) }); i >= 0 {
			t.Errorf("change %d: %s is left", at, n.files()[i])
		}
		n.install(v2)
		n.holds("/opt/cni/bin/enipool", filepath.Join(v2, "enipool"))
	}
}
