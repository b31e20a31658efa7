package install

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	conflistPath = "/etc/cni/net.d/10-enipool.conflist"
	stagedPath   = "/var/lib/enipool/10-enipool.conflist"
	manifestPath = "/var/lib/enipool/install.json"
)

func TestAFreshNodeGetsAllButTheNetworkConfiguration(t *testing.T) {
	n := newNode(t)
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	want := []string{"/etc/there/conf.d/enipool.conf", "/opt/cni/bin/bandwidth", "/opt/cni/bin/enipool",
		"/opt/cni/bin/loopback", "/opt/cni/bin/portmap", stagedPath, manifestPath}
	if diff := cmp.Diff(want, n.files()); diff != "" {
		t.Error(diff)
	}
	for path, mode := range map[string]os.FileMode{"/opt/cni/bin/enipool": 0o755, stagedPath: 0o600, "/etc/there/conf.d/enipool.conf": 0o644} {
		if got := n.inode(path).Mode(); got != mode {
			t.Errorf("%s has mode %v, want %v", path, got, mode)
		}
	}
	n.tells("installed /opt/cni/bin/portmap v1.9.1")
	n.tells("wrote     /etc/there/conf.d/enipool.conf: why; in effect when")
	n.tells("staged    " + stagedPath + ": the agent puts it at " + conflistPath + " when it can serve")
}

func TestASecondRunChangesNothing(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.install(from)
	before := map[string]os.FileInfo{}
	for _, path := range n.files() {
		before[path] = n.inode(path)
	}
	n.install(from)
	for path, was := range before {
		// The manifest too: between its two writes nothing had to be done.
		if is := n.inode(path); !os.SameFile(was, is) || !was.ModTime().Equal(is.ModTime()) {
			t.Errorf("%s was written again", path)
		}
	}
	if got := strings.Join(n.said, "\n"); strings.Count(got, "unchanged") != len(n.said) {
		t.Errorf("it says of unchanged things\n%s", got)
	}
}

func TestWrongModeAndOwnerAreChanges(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.install(from)
	if err := os.Chmod(n.at("/opt/cni/bin/enipool"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.install(from)
	if got := n.inode("/opt/cni/bin/enipool").Mode(); got != 0o755 {
		t.Errorf("mode is %v", got)
	}
	if err := os.Chown(n.at("/opt/cni/bin/enipool"), 1, 1); err != nil {
		t.Skipf("only root of the machine may give files away: %v", err)
	}
	n.install(from)
	if got := n.inode("/opt/cni/bin/enipool").Sys().(*syscall.Stat_t); got.Uid != 0 || got.Gid != 0 {
		t.Errorf("it belongs to %d:%d", got.Uid, got.Gid)
	}
}

func TestAnotherReleaseReplacesOursLaterOrNot(t *testing.T) {
	n := newNode(t)
	v1, v2 := shipped(t, "v0.1.0", "v1.6.0"), shipped(t, "v0.2.0", "v1.9.1")
	for _, from := range []string{v1, v2, v1} {
		n.install(from)
		for _, name := range []string{"enipool", "portmap", "bandwidth", "loopback"} {
			n.holds("/opt/cni/bin/"+name, filepath.Join(from, name))
		}
	}
	n.uninstall()
	if diff := cmp.Diff([]string(nil), n.files()); diff != "" {
		t.Errorf("left over: %s", diff)
	}
}

func TestAPublishedConfigurationStaysDuringAnUpgrade(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	makeCache(t, n.at("/run/enipool/node.cache"))
	n.install(from)
	n.publish()
	was := n.inode(conflistPath)
	n.conflist(strings.Replace(chained, `"mtu": 0`, `"mtu": 1400`, 1))
	n.install(shipped(t, "v0.2.0", "v1.9.1"))
	if !os.SameFile(was, n.inode(conflistPath)) {
		t.Error("it was replaced before the agent could serve")
	}
	if n.publish() != conflistPath || !strings.Contains(n.has(conflistPath), "1400") {
		t.Error("the agent did not publish the new one")
	}
}

func TestNodesWithoutAnAgentArePublishedAtOnce(t *testing.T) {
	n := newNode(t)
	n.Now = true
	n.install(shipped(t, "v0.1.0", "v1.9.1"))
	n.tells("published " + conflistPath)
	if n.has(conflistPath) != chained {
		t.Error("it is not there")
	}
	n.install(n.From)
	n.tells("unchanged " + conflistPath)
}

func TestASystemFileThatIsNotWantedGoes(t *testing.T) {
	n, from := newNode(t), shipped(t, "v0.1.0", "v1.9.1")
	n.install(from)
	n.System[0].Text = ""
	n.install(from)
	n.tells("removed   /etc/there/conf.d/enipool.conf")
	if n.has("/etc/there/conf.d/enipool.conf") != "" {
		t.Error("it is there")
	}
}

// A runtime that calls the plugin meets the old one or the new one, and an old one
// that runs is not disturbed.
func TestARunningProgramSurvivesItsReplacement(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	v1, v2 := shipped(t, "v0.1.0", "v1.9.1"), shipped(t, "v0.2.0", "v1.9.1")
	write(t, filepath.Join(v1, "enipool"), string(self), 0o755)
	write(t, filepath.Join(v2, "enipool"), string(self)+"another release", 0o755)
	n := newNode(t)
	n.install(v1)
	cmd := exec.Command(n.at("/opt/cni/bin/enipool"))
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err != nil || err2 != nil || cmd.Start() != nil {
		t.Fatal(err, err2)
	}
	lines := bufio.NewReader(out)
	if line, _ := lines.ReadString('\n'); line != "running\n" {
		t.Fatalf("it says %q", line)
	}
	n.install(v2)
	n.holds("/opt/cni/bin/enipool", filepath.Join(v2, "enipool"))
	n.install(v1)
	in.Close()
	if rest, _ := io.ReadAll(lines); string(rest) != "ended\n" {
		t.Errorf("it says %q", rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOfSeveralInstallationsAtOnceOneWinsWhole(t *testing.T) {
	one := newNode(t)
	one.System = nil
	from := []string{shipped(t, "v0.1.0", "v1.6.0"), shipped(t, "v0.2.0", "v1.9.1")}
	for range 5 {
		var wg sync.WaitGroup
		for i := range 6 {
			n := &node{t: t, Options: one.Options}
			wg.Go(func() {
				if err := n.try(from[i%2]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		last := from[0]
		if one.has("/opt/cni/bin/enipool") == plugin("enipool", "v0.2.0") {
			last = from[1]
		}
		for _, name := range []string{"enipool", "portmap", "bandwidth", "loopback"} {
			one.holds("/opt/cni/bin/"+name, filepath.Join(last, name))
		}
	}
	one.uninstall()
	if diff := cmp.Diff([]string(nil), one.files()); diff != "" {
		t.Errorf("left over: %s", diff)
	}
}

// The locked folder goes with the lock if nothing is in it. Who waited for it must
// not take what is left of it for the lock.
func TestALockOnAFolderThatIsGoneIsNone(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "enipool")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	first, err := lockDir(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan *os.File)
	go func() {
		second, err := lockDir(ctx, dir)
		if err != nil {
			t.Error(err)
		}
		waited <- second
	}()
	for openings(t, dir) < 2 {
		runtime.Gosched()
	}
	if err := errors.Join(os.Remove(dir), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	third, err := lockDir(ctx, dir)
	if third == nil || err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	first.Close()
	if second := <-waited; second != nil {
		t.Error("two hold it")
		second.Close()
	}
}

// openings counts how often this process has the folder open.
func openings(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == dir {
			n++
		}
	}
	return n
}

func TestALockThatIsHeldIsNamedAfterAWhile(t *testing.T) {
	n := newNode(t)
	unlock, err := n.Tree.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = n.Tree.Lock(ctx)
	if err == nil || !strings.Contains(err.Error(), "another install") {
		t.Errorf("error is %v", err)
	}
	unlock()
	if _, err := os.Stat(n.at(StateDir)); !os.IsNotExist(err) {
		t.Errorf("the folder for nothing is there: %v", err)
	}
}
