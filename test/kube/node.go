package kube

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/enipool/enipool/pkg/isolate"
	"golang.org/x/sys/unix"
)

//go:embed node.sh
var nodeScript string

// NodeOptions are what a node is like.
type NodeOptions struct {
	Name string // one word, its hostname too

	// Netns is the path of the network namespace that the node lives in. The node
	// leaves there what its pods' network made. If it is empty the node has one of
	// its own, with nothing but loopback.
	Netns string

	// IP is the address that the node tells the API server, one of its own; without
	// it the kubelet looks for one at its default route. A node without Netns gets
	// it on its loopback.
	IP netip.Addr

	// MaxPods is the kubelet's; 110 if not set.
	MaxPods int

	// DNS is the address of the cluster's DNS, which its pods ask; none if not set.
	DNS netip.Addr

	// Images are paths of OCI archives that the node has besides PauseImage and
	// BusyboxImage.
	Images []string
}

// Node is a machine with containerd, and a kubelet if a cluster made it. It has
// /etc, /opt, /run, /var/lib and /var/log of its own, so CNI folders too, empty at
// first, and sees no other process than its own.
type Node struct {
	NodeOptions

	// Containerd and Kubelet stop and start when a test says so; containers stay.
	Containerd, Kubelet *Program

	t      testing.TB
	c      *Cluster // nil without a kubelet
	dir    string   // /run/kube inside
	cgroup string
	init   *Program // whose namespaces are the node's; all that is in them ends with it
	ns     *isolate.Namespace
	tunnel *tunnel
}

// newNode makes the namespaces of a node.
func newNode(t testing.TB, dir, bin string, o NodeOptions) (*Node, error) {
	n := &Node{NodeOptions: o, t: t, dir: filepath.Join(dir, o.Name), cgroup: filepath.Base(dir) + "-" + o.Name}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(n.dir, "node.sh"), []byte(nodeScript), 0o600); err != nil {
		return nil, err
	}
	if err := n.ownNetns(); err != nil {
		return nil, err
	}
	n.init = &Program{t: t, name: o.Name + "-init", log: filepath.Join(dir, "log", o.Name+"-init"), enter: n.Do,
		command: func() *exec.Cmd {
			cmd := exec.Command("bash", filepath.Join(n.dir, "node.sh"), "enter", o.Name, n.dir, bin, n.cgroup)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
			return cmd
		},
		ready: func() error { _, err := os.Stat(filepath.Join(n.dir, "up")); return err }}
	return n, nil
}

// ownNetns makes a network namespace for a node that was given none.
func (n *Node) ownNetns() error {
	if n.Netns != "" {
		return nil
	}
	ns := &isolate.Namespace{Name: n.cgroup}
	if err := ns.Create(); err != nil {
		return err
	}
	n.ns, n.Netns = ns, ns.Path()
	if !n.IP.IsValid() {
		return nil
	}
	if err := ns.Do(func() error { return addToLoopback(n.IP) }); err != nil {
		return errors.Join(err, ns.Remove())
	}
	return nil
}

// Do runs a function in the node's network namespace; see isolate.In. Its files
// are those of the test.
func (n *Node) Do(fn func() error) error {
	f, err := os.Open(n.Netns)
	if err != nil {
		return fmt.Errorf("open network namespace of node %s: %w", n.Name, err)
	}
	defer f.Close()
	return isolate.In(f, fn)
}

// Path returns where the test finds a file of the node, like /etc/cni/net.d, as
// long as the node runs.
func (n *Node) Path(inside string) string {
	return filepath.Join("/proc", fmt.Sprint(n.init.Pid()), "root", inside)
}

// Run runs a command on the node and returns what it printed.
func (n *Node) Run(command ...string) string {
	n.t.Helper()
	out, err := n.Try(command...)
	if err != nil {
		n.t.Fatalf("on node %s: %v", n.Name, err)
	}
	return out
}

// Try is Run for a command that may fail.
func (n *Node) Try(command ...string) (out string, err error) {
	err = n.inside(func() error {
		out, err = output(n.command(command...))
		return err
	})
	return out, err
}

// Program is one of the test's own that runs on the node. It is started by Start,
// ready as told by a function or, if that is nil, at once.
func (n *Node) Program(name string, ready func() error, command ...string) *Program {
	return &Program{t: n.t, name: n.Name + "-" + name, log: filepath.Join(filepath.Dir(n.dir), "log", n.Name+"-"+name),
		enter: n.inside, inNode: true, ready: ready, command: func() *exec.Cmd { return n.command(command...) }}
}

// command is one that runs in the node's cgroup.
func (n *Node) command(command ...string) *exec.Cmd {
	cmd := exec.Command("bash", append([]string{"/run/kube/node.sh", "run"}, command...)...)
	cmd.Dir = "/"
	return cmd
}

// inside runs the function on a thread in all of the node's namespaces. Processes
// that it starts are the node's.
func (n *Node) inside(fn func() error) error {
	return isolate.OnThread(func() error {
		// A thread that shares its working folder can't have other mounts.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		var files []*os.File
		for kind := range strings.FieldsSeq("cgroup ipc uts net pid mnt") { // after mnt /proc is another
			f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", n.init.Pid(), kind))
			if err != nil {
				return fmt.Errorf("enter node %s: %w", n.Name, err)
			}
			defer f.Close()
			files = append(files, f)
		}
		for _, f := range files {
			if err := unix.Setns(int(f.Fd()), 0); err != nil {
				return fmt.Errorf("enter node %s: %s: %w", n.Name, f.Name(), err)
			}
		}
		return fn()
	})
}
