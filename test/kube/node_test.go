package kube

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// conflist is a network that needs nothing but the reference plugins.
const conflist = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
	{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	{"type": "portmap", "capabilities": {"portMappings": true}}]}`

// installNetwork puts the reference plugins and their configuration on a node.
func installNetwork(t *testing.T, n *Node) {
	t.Helper()
	for _, plugin := range []string{"ptp", "host-local", "loopback", "portmap"} {
		text, err := os.ReadFile(filepath.Join("..", "..", ".build", "cni", plugin))
		if err != nil {
			t.Fatalf("make tools builds the reference plugins: %v", err)
		}
		write(t, n.Path("/opt/cni/bin/"+plugin), text)
	}
	write(t, n.Path("/etc/cni/net.d/10-pods.conflist"), []byte(conflist))
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

// pod is what these tests read of a Pod object.
type pod struct {
	Status struct {
		Phase, PodIP      string
		ContainerStatuses []struct {
			ContainerID  string
			Ready        bool
			RestartCount int
		}
	}
}

// running waits until a pod runs.
func running(c *Cluster, name string) (p pod) {
	c.t.Helper()
	c.Eventually("pod "+name+" runs", func() error {
		p = pod{}
		err := c.Get("/api/v1/namespaces/default/pods/"+name, &p)
		if s := p.Status; err == nil && (s.PodIP == "" || len(s.ContainerStatuses) == 0 || !s.ContainerStatuses[0].Ready) {
			err = fmt.Errorf("it is %+v", p.Status)
		}
		return err
	})
	return p
}

func TestANodeTurnsReadyOnceItHasANetwork(t *testing.T) {
	t.Parallel()
	NeedNodes(t)
	c := Start(t, Options{})
	n := c.AddNode(NodeOptions{Name: "n1", IP: netip.MustParseAddr("192.0.2.1"), MaxPods: 7})
	var is node
	c.Eventually("the node waits for a network", func() error {
		err := c.Get("/api/v1/nodes/n1", &is)
		if err == nil && !strings.Contains(fmt.Sprint(is.Status.Conditions), "cni plugin not initialized") {
			err = fmt.Errorf("conditions: %+v", is.Status.Conditions)
		}
		return err
	})
	if got := is.Status.Capacity["pods"]; got != "7" {
		t.Errorf("room for %q pods, want 7", got)
	}
	installNetwork(t, n)
	n.WaitReady()
}

// One node serves all: each case works with a pod of its own.
func TestPodsOfANode(t *testing.T) {
	t.Parallel()
	NeedNodes(t)
	c := Start(t, Options{Scheduler: true, ControllerManager: true})
	n := c.AddNode(NodeOptions{Name: "n1", IP: netip.MustParseAddr("192.0.2.1")})
	installNetwork(t, n)
	n.WaitReady()
	for name, test := range map[string]func(t *testing.T, c *Cluster, n *Node, name string){
		"answer-to-the-node":            theyAnswer,
		"say-and-do-what-they-are-told": theySayAndDo,
		"reach-the-api-server":          theyReachTheAPIServer,
		"outlive-their-runtime":         theyOutliveTheirRuntime,
		"return-after-a-reboot":         theyReturnAfterAReboot,
	} {
		t.Run(name, func(t *testing.T) {
			c.Kubectl("run", name, "--image="+BusyboxImage, "--command", "--", "sh", "-c", "echo started; exec sleep 1h")
			test(t, c, n, name)
		})
	}
}

func theyAnswer(t *testing.T, c *Cluster, n *Node, name string) {
	n.Run("ping", "-c", "1", "-W", "5", running(c, name).Status.PodIP)
}

func theySayAndDo(t *testing.T, c *Cluster, _ *Node, name string) {
	running(c, name)
	if got := c.Kubectl("logs", name); got != "started\n" {
		t.Errorf("logs: %q", got)
	}
	if got := c.Kubectl("exec", name, "--", "hostname"); got != name+"\n" {
		t.Errorf("hostname in the pod: %q", got)
	}
}

func theyReachTheAPIServer(t *testing.T, c *Cluster, _ *Node, name string) {
	running(c, name)
	got := c.Kubectl("exec", name, "--", "sh", "-c", "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo connected")
	if got != "connected\n" {
		t.Errorf("the pod says %q", got)
	}
}

func theyOutliveTheirRuntime(t *testing.T, c *Cluster, n *Node, name string) {
	before := running(c, name)
	n.Kubelet.Stop()
	n.Containerd.Kill()
	n.Run("ping", "-c", "1", "-W", "5", before.Status.PodIP)
	n.Containerd.Start()
	n.Kubelet.Start()
	c.Eventually("the kubelet knows the pod", func() error {
		_, err := c.TryKubectl("exec", name, "--", "true")
		return err
	})
	if after := running(c, name); after.Status.ContainerStatuses[0] != before.Status.ContainerStatuses[0] {
		t.Errorf("container was %+v, is %+v", before.Status, after.Status)
	}
}

func theyReturnAfterAReboot(t *testing.T, c *Cluster, n *Node, name string) {
	const boot = "/proc/sys/kernel/random/boot_id"
	running(c, name)
	last := n.Run("cat", boot)
	n.Run("touch", "/var/lib/kept", "/run/lost")
	n.Reboot()
	if now := n.Run("cat", boot); now == last {
		t.Errorf("boot id is %s as before", now)
	}
	if got, err := n.Try("ls", "/var/lib/kept", "/run/lost"); got != "/var/lib/kept\n" {
		t.Errorf("files: %q, %v", got, err)
	}
	c.Eventually("the pod was started again", func() error {
		if p := running(c, name); p.Status.ContainerStatuses[0].RestartCount == 0 {
			return errors.New("it was not")
		}
		return nil
	})
}

// A node in a namespace of somebody else finds its address itself.
func TestANodeJoinsANamespaceAndLeavesIt(t *testing.T) {
	t.Parallel()
	NeedNodes(t)
	ns := nettest.NewNetns(t, "joined")
	ns.Run(t, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "far")
	for _, line := range []string{"link set eth0 up", "link set far up", "address add 10.9.0.2/24 dev eth0", "route add default via 10.9.0.1"} {
		ns.Run(t, "ip", strings.Fields(line)...)
	}
	before := ns.Run(t, "ip", "-o", "address", "show", "dev", "lo")
	c := Start(t, Options{})
	n := c.AddNode(NodeOptions{Name: "n1", Netns: ns.Path})
	installNetwork(t, n)
	n.WaitReady()
	c.Apply(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "host"}, "spec": {"nodeName": "n1", "hostNetwork": true,
		"containers": [{"name": "host", "image": "` + BusyboxImage + `", "command": ["sh", "-c", "hostname; exec sleep 1h"]}]}}`)
	if got := running(c, "host").Status.PodIP; got != "10.9.0.2" {
		t.Errorf("address %s", got)
	}
	if got := c.Kubectl("logs", "host"); got != "n1\n" {
		t.Errorf("the pod calls its host %q", got)
	}
	n.Stop()
	if after := ns.Run(t, "ip", "-o", "address", "show", "dev", "lo"); after != before {
		t.Errorf("loopback was %s, is %s", before, after)
	}
}

func TestARuntimeWithoutKubeletRunsContainers(t *testing.T) {
	t.Parallel()
	n := StartRuntime(t, NodeOptions{Name: "alone"})
	got := n.Run("ctr", "--namespace=k8s.io", "run", "--rm", BusyboxImage, "one", "echo", "hello")
	if got != "hello\n" {
		t.Errorf("the container says %q", got)
	}
	if _, err := os.Stat(n.Path("/run/containerd/containerd.sock")); err != nil {
		t.Error(err)
	}
}

// Tests that run side by side make and remove namespaces all the time.
func TestANodeStartsWhileOthersRemoveTheirNamespaces(t *testing.T) {
	bin := t.TempDir()
	gone := "#!/bin/sh\necho /run/netns/enipool-just-removed\n"
	if err := os.WriteFile(filepath.Join(bin, "findmnt"), []byte(gone), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-s", "leave_namespaces")
	cmd.Stdin, cmd.Env = strings.NewReader(nodeScript), append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("a namespace that is gone by the time it is left ends the start: %v\n%s", err, out)
	}
}
