package kube

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// containerdConfig suits version 1.6 and, which converts it, version 2. The folders
// are those of the node; nothing of systemd is here.
const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + PauseImage + `"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

// StartRuntime starts a node with containerd and no kubelet: whoever talks to it
// does so at the socket Path("/run/containerd/containerd.sock"). Kubernetes need not
// have been built. The test is skipped as by NeedNodes.
func StartRuntime(t testing.TB, o NodeOptions) *Node {
	t.Helper()
	NeedNodes(t)
	removeStale()
	bin, err := Assets()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := makeFolder(clusters.Add(1))
	if err != nil {
		t.Fatal(err)
	}
	var n *Node
	told := &reasons{TB: t}
	t.Cleanup(func() {
		if n != nil {
			n.end()
		}
		removeFolder(t, dir)
		told.repeat()
	})
	if n, err = newNode(told, dir, bin, o); err != nil {
		t.Fatal(err)
	}
	n.startRuntime()
	return n
}

// startRuntime starts what a node has without a kubelet.
func (n *Node) startRuntime() {
	n.t.Helper()
	n.must(writeStock(n.dir))
	n.must(os.WriteFile(filepath.Join(n.dir, "containerd.toml"), []byte(containerdConfig), 0o600))
	n.Containerd = n.Program("containerd", n.criServes, "containerd", "--config=/run/kube/containerd.toml")
	n.startRuntimeAgain()
	for _, image := range append([]string{filepath.Join(n.dir, "pause.tar"), filepath.Join(n.dir, "busybox.tar")}, n.Images...) {
		n.Import(image)
	}
}

func (n *Node) startRuntimeAgain() {
	n.t.Helper()
	n.init.Start()
	n.Containerd.Start()
}

// Import makes the images of an OCI archive known to the node's containerd.
func (n *Node) Import(archive string) {
	n.t.Helper()
	f, err := os.Open(archive)
	n.must(err)
	defer f.Close()
	n.must(n.inside(func() error {
		cmd := n.command("ctr", "--namespace=k8s.io", "images", "import", "-")
		cmd.Stdin = f // the archive's path means nothing on the node
		_, err := output(cmd)
		return err
	}))
}

func (n *Node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatalf("node %s: %v", n.Name, err)
	}
}

// Reboot ends whatever runs on the node at once, as a power failure does, and starts
// it again: its disk is as it was, /run is empty and the boot id is another.
// The network namespace stays: what was in it is the caller's to undo. Only what
// runs on the node itself sees the other boot id, containers see the machine's.
func (n *Node) Reboot() {
	n.t.Helper()
	n.must(n.powerOff())
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	n.must(err)
	n.must(os.WriteFile(filepath.Join(n.dir, "boot_id"), id, 0o644))
	n.startRuntimeAgain()
	if n.Kubelet != nil {
		n.Kubelet.Start()
	}
}

// powerOff ends every process of the node and removes its cgroups.
func (n *Node) powerOff() error {
	n.init.Kill() // and with it all that is in its PID namespace
	n.Kubelet.Kill()
	n.Containerd.Kill()
	_ = os.Remove(filepath.Join(n.dir, "up"))
	return removeCgroups(n.cgroup)
}

// Stop ends every process of the node for good and removes its cgroups. What it
// made in a network namespace that it was given stays.
func (n *Node) Stop() {
	n.t.Helper()
	n.must(n.stop())
}

func (n *Node) stop() error {
	err := n.powerOff()
	n.tunnel.end()
	if n.ns != nil {
		err = errors.Join(err, n.ns.Remove())
	}
	n.tunnel, n.ns = nil, nil
	return err
}

func (n *Node) end() {
	if err := n.stop(); err != nil {
		n.t.Error(err)
	}
}
