package kube

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// left lists what a cluster of the folder has left behind.
func left(t *testing.T, dir string) (found []string) {
	t.Helper()
	name := filepath.Base(dir)
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		for _, file := range []string{"cmdline", "cgroup", "mountinfo"} {
			if text, err := os.ReadFile(filepath.Join(proc, file)); err == nil && strings.Contains(string(text), name) {
				found = append(found, fmt.Sprintf("%s/%s: %s", proc, file, text))
			}
		}
	}
	files, _ := filepath.Glob("/run/netns/" + name + "*")
	if _, err := os.Stat(dir); err == nil {
		files = append(files, dir)
	}
	cmd := exec.Command("unshare", "--mount", "bash", "-s", "eval", "mount -t tmpfs tmpfs /sys; mkdir -p /sys/fs/cgroup; mount_cgroups; find /sys -name '"+name+"*'")
	cmd.Stdin = strings.NewReader(nodeScript)
	cgroups, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(found, files...), strings.Fields(cgroups)...)
}

// withPod starts a cluster with a pod that runs.
func withPod(t *testing.T) *Cluster {
	c := Start(t, Options{})
	n := c.AddNode(NodeOptions{Name: "n1", IP: netip.MustParseAddr("192.0.2.1")})
	installNetwork(t, n)
	n.WaitReady()
	c.Apply(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"nodeName": "n1",
		"containers": [{"name": "web", "image": "` + BusyboxImage + `", "command": ["sleep", "1h"]}]}}`)
	running(c, "web")
	return c
}

func TestNothingIsLeftOfACluster(t *testing.T) {
	t.Parallel()
	Need(t)
	NeedNodes(t)
	var dir string
	t.Run("its life", func(t *testing.T) {
		dir = withPod(t).dir
		if len(left(t, dir)) < 10 {
			t.Errorf("while it lives there is only %v", left(t, dir))
		}
	})
	for _, what := range left(t, dir) {
		t.Error(what)
	}
}

// victim is set for the process that is killed.
const victim = "ENIPOOL_KUBE_VICTIM"

// The processes of a killed test die with it, the next test removes the rest.
func TestNothingIsLeftOfAKilledTest(t *testing.T) {
	if os.Getenv(victim) != "" {
		fmt.Println("folder", withPod(t).dir)
		<-t.Context().Done() // never: it is killed
	}
	t.Parallel()
	Need(t)
	NeedNodes(t)
	nettest.Need(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestNothingIsLeftOfAKilledTest$")
	cmd.Env = append(os.Environ(), victim+"=yes", "ENIPOOL_NETTEST=")
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := ""
	for lines := bufio.NewScanner(said); dir == "" && lines.Scan(); {
		dir = strings.TrimPrefix(lines.Text(), "folder ")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, said)
	_ = cmd.Wait() // killed, as we know
	err = Wait(Patience, func() error {
		removeStale()
		if all := left(t, dir); len(all) > 0 {
			return fmt.Errorf("left: %v", all)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
