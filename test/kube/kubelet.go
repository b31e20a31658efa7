package kube

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kubeletConfig is the kubelet's, for a node without systemd whose cgroups are a
// part of the machine's. The disk is the machine's, so fullness of it is none of
// the test's business.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /
enforceNodeAllocatable: []
evictionHard: {memory.available: 50Mi}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: /var/lib/kubelet/volumeplugins
serializeImagePulls: false
oomScoreAdj: 0
kubeAPIQPS: 100
kubeAPIBurst: 200
maxPods: %d
`

// AddNode starts a node of the cluster: containerd, images, kubelet. It does not
// wait for the node to be Ready, which takes a network; see WaitReady. The test is
// skipped as by NeedNodes.
func (c *Cluster) AddNode(o NodeOptions) *Node {
	c.t.Helper()
	NeedNodes(c.t)
	n, err := newNode(c.t, c.dir, c.bin, o)
	c.must(err)
	n.c = c
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	n.startRuntime()
	n.tunnel, err = n.openTunnel()
	c.must(err)
	n.startKubelet()
	return n
}

func (n *Node) startKubelet() {
	n.t.Helper()
	config := n.c.kubeconfigAt("https://"+tunnelAddress, "system:node:"+n.Name, []string{"system:nodes"})
	text, err := os.ReadFile(config)
	n.must(err)
	n.must(os.WriteFile(filepath.Join(n.dir, "kubeconfig"), text, 0o600))
	own := fmt.Appendf(nil, kubeletConfig, cmp.Or(n.MaxPods, 110))
	if n.DNS.IsValid() {
		own = fmt.Appendf(own, "clusterDNS: [%s]\nclusterDomain: cluster.local\n", n.DNS)
	}
	n.must(os.WriteFile(filepath.Join(n.dir, "kubelet.yaml"), own, 0o600))
	flags := []string{"/run/kube/bin/kubelet", "--config=/run/kube/kubelet.yaml", "--kubeconfig=/run/kube/kubeconfig",
		"--hostname-override=" + n.Name, "--cert-dir=/var/lib/kubelet/pki", "--v=2"}
	if n.IP.IsValid() {
		flags = append(flags, "--node-ip="+n.IP.String())
	}
	n.Kubelet = n.Program("kubelet", n.kubeletServes, flags...)
	n.Kubelet.Start()
}

// kubeletServes returns nil once the kubelet listens for the API server.
func (n *Node) kubeletServes() error {
	return n.Do(func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:10250")
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// node is what tests read of a Node object.
type node struct {
	Status struct {
		Addresses  []struct{ Type, Address string }
		Conditions []struct{ Type, Status, Message string }
		Capacity   map[string]string
	}
}

// WaitReady waits until the API server calls the node Ready.
func (n *Node) WaitReady() {
	n.t.Helper()
	n.c.Eventually("node "+n.Name+" Ready", func() error {
		var is node
		if err := n.c.Get("/api/v1/nodes/"+n.Name, &is); err != nil {
			return err
		}
		for _, condition := range is.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("conditions: %+v", is.Status.Conditions)
	})
}

// nodeAt returns the node with an address, which was asked for or found by the
// kubelet, or nil.
func (c *Cluster) nodeAt(address string) *Node {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.nodes, func(n *Node) bool { return n.has(ip) })
	if i < 0 {
		return nil
	}
	return c.nodes[i]
}

// has tells whether an address is one of the node's own.
func (n *Node) has(ip netip.Addr) bool {
	if n.IP.IsValid() {
		return n.IP == ip
	}
	found := false
	_ = n.Do(func() error {
		addresses, err := net.InterfaceAddrs()
		for _, a := range addresses {
			found = found || strings.HasPrefix(a.String(), ip.String()+"/")
		}
		return err
	})
	return found
}
