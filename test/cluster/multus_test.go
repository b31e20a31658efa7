package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/lab"
	"github.com/google/go-cmp/cmp"
)

// multus returns the path of Multus's thin plugin, which is nothing that this repository builds: who has one says where. Elsewhere it is twonets, which
// follows its documentation.
func (c *cluster) multus() string {
	c.t.Helper()
	if program := os.Getenv("ENIPOOL_MULTUS"); program != "" {
		return program
	}
	program := filepath.Join(c.t.TempDir(), "twonets")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", program, "./twonets")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("build twonets: %v\n%s", err, out)
	}
	return program
}

// In a pod "first" enipool's network is the first one, as the cluster's, and another plugin's the second; in "second" it is the other way round.
func TestMultusWithEnipoolAsFirstAndAsSecondNetwork(t *testing.T) {
	t.Parallel()
	c := start(t, "multus")
	program := c.multus()
	a, b := c.addNode("multus-a"), c.addNode("multus-b")
	// Addresses of pods are on later ENIs, so that those who answer by the first one are found out.
	c.install(c.overlay(simulated, first, strings.Replace(settings, "pool:\n", "pool:\n  firstENI: 1\n", 1), ""))
	c.Apply(attachments)
	c.Kubectl("wait", "--for=condition=Established", "crd/network-attachment-definitions.k8s.cni.cncf.io", "--timeout=1m")
	c.Apply(networks)
	c.Apply(fmt.Sprintf(pinned, "far", b.Name))
	c.Kubectl("wait", "--for=condition=Ready", "pod/far", "--timeout=1m")
	clean := a.multusTraces()
	a.installMultus(program)
	c.Kubectl("cordon", b.Name)

	c.Apply(fmt.Sprintf(twoNetworks, "first", `k8s.v1.cni.cncf.io/networks: side`))
	c.Apply(fmt.Sprintf(twoNetworks, "second", `v1.multus-cni.io/default-network: kube-system/others, k8s.v1.cni.cncf.io/networks: enipool`))
	c.Kubectl("wait", "--for=condition=Ready", "pod/first", "pod/second", "--timeout=60s")
	ours, theirs := a.addressesOf("first"), a.addressesOf("second")
	t.Logf("first: %v, second: %v", ours, theirs)
	a.areOfThePool(ours["eth0"], theirs["net1"])
	if !netip.MustParsePrefix("172.31.0.0/24").Contains(ours["net1"]) || !netip.MustParsePrefix("172.30.0.0/24").Contains(theirs["eth0"]) {
		t.Errorf("the other plugin's addresses are %s and %s", ours["net1"], theirs["eth0"])
	}
	a.bothNetworksWork(b, ours, theirs)
	a.agentIsContent()

	a.writeNewest()
	a.statusPassesThrough()
	a.gcPassesThrough()
	a.areOfThePool(ours["eth0"], theirs["net1"])

	// A new agent is installed anew, and finds Multus's file before its own.
	c.Kubectl("--namespace=kube-system", "delete", "pod/"+a.agent().Name, "--wait")
	c.Kubectl("--namespace=kube-system", "rollout", "status", "daemonset/enipool-agent", "--timeout=2m")
	c.Kubectl("delete", "pod/first", "pod/second", "--wait")
	a.eventually("pods of two networks leave nothing", func() error {
		if diff := cmp.Diff(clean, a.multusTraces()); diff != "" {
			return errors.New("-before +after:\n" + diff)
		}
		if used := a.used(); sum(used) > 0 {
			return fmt.Errorf("used by ENI: %v", used)
		}
		_, err := a.ctl("pool", "check")
		return err
	})
}

// installMultus puts Multus before enipool as people do: the programs, a kubeconfig, and the configuration that enipool ships.
func (n *node) installMultus(program string) {
	n.c.t.Helper()
	reference, err := filepath.Abs("../../.build/cni")
	n.c.must(err)
	for name, from := range map[string]string{"multus": program, "ptp": reference + "/ptp", "host-local": reference + "/host-local"} {
		text, err := os.ReadFile(from)
		n.c.must(err)
		n.c.must(os.WriteFile(n.Path("/opt/cni/bin/"+name), text, 0o755)) //nolint:gosec // it is run
	}
	conflist, err := os.ReadFile("../../conf/00-multus.conflist")
	n.c.must(err)
	n.Run("sh", "-c", "mkdir -p /etc/cni/net.d/multus.d && cp /run/kube/kubeconfig /etc/cni/net.d/multus.d/multus.kubeconfig")
	n.c.must(os.WriteFile(n.Path("/etc/cni/net.d/multus.new"), conflist, 0o600))
	n.Run("mv", "/etc/cni/net.d/multus.new", "/etc/cni/net.d/00-multus.conflist")
	// It reads its folder when it starts, and when that changes: how soon is not told.
	n.Containerd.Stop()
	n.Containerd.Start()
	n.WaitReady()
}

// addressesOf returns the pod's addresses by interface, as the pod has them.
func (n *node) addressesOf(pod string) map[string]netip.Addr {
	n.c.t.Helper()
	has := map[string]netip.Addr{}
	for line := range strings.Lines(n.c.Kubectl("exec", pod, "--", "ip", "-4", "-o", "addr", "show")) {
		if f := strings.Fields(line); len(f) > 3 && f[1] != "lo" {
			has[f[1]] = netip.MustParsePrefix(f[3]).Addr()
		}
	}
	if len(has) != 2 {
		n.c.t.Fatalf("pod %s has the addresses %v, want those of eth0 and net1", pod, has)
	}
	return has
}

// areOfThePool checks that the addresses, and no others, are used in the pool, on an ENI that is not the first.
func (n *node) areOfThePool(want ...netip.Addr) {
	n.c.t.Helper()
	var used []netip.Addr
	for _, a := range n.pool().Addresses {
		if a.State == "used" {
			used = append(used, a.Address)
		}
	}
	slices.SortFunc(want, netip.Addr.Compare)
	slices.SortFunc(used, netip.Addr.Compare)
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(used)); diff != "" {
		n.c.t.Errorf("used addresses of node %s, -want +got:\n%s", n.Name, diff)
	}
	for _, nic := range n.c.vpc.Account.Attached(n.Name) {
		for _, a := range nic.Addresses {
			if slices.Contains(want, a) && nic.Index == 0 {
				n.c.t.Errorf("%s is on the first ENI", a)
			}
		}
	}
}

// bothNetworksWork checks that each address of the pool is answered from, and reached, by the ENI that has it: the VPC drops what leaves by another.
func (n *node) bothNetworksWork(far *node, ours, theirs map[string]netip.Addr) {
	n.c.t.Helper()
	farIP := n.c.Kubectl("get", "pod/far", "--output=jsonpath={.status.podIP}")
	for pod, from := range map[string]netip.Addr{"first": ours["eth0"], "second": theirs["net1"]} {
		for _, to := range []string{farIP, lab.Internet4} {
			if out, err := n.c.TryKubectl("exec", pod, "--", "ping", "-c", "1", "-W", "5", "-I", from.String(), to); err != nil {
				n.c.t.Errorf("pod %s does not reach %s from %s: %v\n%s", pod, to, from, err, out)
			}
		}
		if out, err := n.c.TryKubectl("exec", "far", "--", "timeout", "5", "wget", "-q", "-O", "/dev/null", "http://"+from.String()+"/hostname"); err != nil {
			n.c.t.Errorf("a pod of node %s does not reach %s at %s: %v\n%s", far.Name, pod, from, err, out)
		}
	}
	// The way out of the second pod is its first network's.
	if out, err := n.c.TryKubectl("exec", "second", "--", "ping", "-c", "1", "-W", "5", lab.Internet4); err != nil {
		n.c.t.Errorf("pod second has lost its first network: %v\n%s", err, out)
	}
}

// agentIsContent checks that nobody calls such pods wrong: neither the checks, nor the node's condition.
func (n *node) agentIsContent() {
	n.c.t.Helper()
	n.eventually("pods of two networks are in order", func() error {
		out, err := n.ctl("pool", "check")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return n.healthy()
	})
}

// multusTraces is what pods would leave on the node, of Multus and of the reference plugins too.
func (n *node) multusTraces() string {
	return n.traces() + n.Run("sh", "-c", `find /var/lib/cni -type f 2>/dev/null | grep -v -e last_reserved -e /lock$; true`)
}
