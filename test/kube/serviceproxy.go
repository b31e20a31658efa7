package kube

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// endpoint is what an API server tells of itself where others may connect to it: see endpointIP.
const endpoint = `apiVersion: v1
kind: Endpoints
metadata: {name: kubernetes, namespace: default, labels: {endpointslice.kubernetes.io/skip-mirror: "true"}}
subsets:
- addresses: [{ip: %[1]s}]
  ports: [{name: https, port: 443}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
endpoints: [{addresses: [%[1]s], conditions: {ready: true}}]
ports: [{name: https, port: 443}]
`

// StartServiceProxies starts a kube-proxy on each node that there is, in the mode nftables or
// iptables. It is one of Specs.
func (c *Cluster) StartServiceProxies(mode string) {
	c.t.Helper()
	c.Apply(fmt.Sprintf(endpoint, endpointIP))
	bin, err := Specs()
	c.must(err)
	for _, n := range c.nodes {
		text, err := os.ReadFile(c.kubeconfigAt("https://"+tunnelAddress, "system:kube-proxy", nil))
		c.must(err)
		c.must(os.WriteFile(filepath.Join(n.dir, "kube-proxy.kubeconfig"), text, 0o600))
		// The numbers of conntrack are the whole machine's: a node can't write them.
		n.Program("kube-proxy", n.proxyServes, filepath.Join(bin, "kube-proxy"), "--kubeconfig=/run/kube/kube-proxy.kubeconfig",
			"--proxy-mode="+mode, "--hostname-override="+n.Name, "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0",
			"--conntrack-tcp-timeout-close-wait=0", "--v=2").Start()
	}
}

// proxyServes returns nil once the kube-proxy listens.
func (n *Node) proxyServes() error {
	return n.Do(func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:10256")
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}
