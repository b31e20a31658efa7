package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// denyAll stops whatever comes to web servers.
const denyAll = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
`

// A policy that denies stops what comes to pods of enipool, from the same node and from another one; without it all goes through. What enipool
// has in the kernel is the same with the engine as without.
func TestKubeRouterEnforcesPoliciesOnPodsOfEnipool(t *testing.T) {
	t.Parallel()
	engine := os.Getenv("ENIPOOL_KUBE_ROUTER")
	if engine == "" {
		t.Skip("ENIPOOL_KUBE_ROUTER does not name a program: it is the path of kube-router, which needs ipset on this machine")
	}
	c := start(t, "policy")
	a, b := c.addNode("policy-a"), c.addNode("policy-b")
	c.install(c.overlay(simulated, first, strings.Replace(settings, "pool:\n", "pool:\n  firstENI: 1\n", 1), ""))
	c.Apply(fmt.Sprintf(web, 4))
	c.run(4)
	for _, n := range c.nodes {
		c.Apply(fmt.Sprintf(pinned, "from-"+n.Name, n.Name))
	}
	c.Kubectl("wait", "--for=condition=Ready", "pod/from-"+a.Name, "pod/from-"+b.Name, "--timeout=1m")
	rules := map[*node]string{a: a.rules(), b: b.rules()}
	// Kubelets' rights are not enough: it watches policies, pods and nodes.
	c.Kubectl("create", "clusterrolebinding", "policy", "--clusterrole=cluster-admin", "--group=system:nodes")
	for _, n := range c.nodes {
		n.Program("kube-router", nil, engine, "--kubeconfig=/run/kube/kubeconfig", "--hostname-override="+n.Name,
			"--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--iptables-sync-period=5s").Start()
	}

	// Until the engine is up a pod that it let through tells nothing, so the first thing to see is that it denies.
	c.Apply(denyAll)
	c.Eventually("no web server can be reached", func() error { return c.webServers(false) })
	c.Kubectl("delete", "networkpolicy/deny")
	c.Eventually("all web servers can be reached", func() error { return c.webServers(true) })
	c.scale(8) // pods that come while the engine is there
	c.Eventually("new web servers can be reached", func() error { return c.webServers(true) })
	c.Apply(denyAll)
	c.Eventually("no web server can be reached any more", func() error { return c.webServers(false) })
	c.Kubectl("delete", "networkpolicy/deny")
	c.Eventually("all web servers can be reached again", func() error { return c.webServers(true) })
	c.scale(4)
	for _, n := range c.nodes {
		n.eventually("the engine has left enipool's rules alone", func() error {
			if diff := cmp.Diff(rules[n], n.rules()); diff != "" {
				return fmt.Errorf("-before +after:\n%s", diff)
			}
			return nil
		})
		n.agentIsContent()
	}
}

// webServers returns nil if all of them can be reached by pods of each node, or none by any, as it should be.
func (c *cluster) webServers(reachable bool) error {
	for _, p := range c.web() {
		for _, n := range c.nodes {
			_, err := c.TryKubectl("exec", "from-"+n.Name, "--", "timeout", "3", "wget", "-q", "-O", "/dev/null", "http://"+p.Status.PodIP+"/hostname")
			if (err == nil) != reachable {
				return fmt.Errorf("%s of node %s from node %s: %v", p.Name, p.Spec.NodeName, n.Name, err)
			}
		}
	}
	return nil
}

// rules are enipool's in the node's kernel, but for those of single pods.
func (n *node) rules() string {
	return n.Run("sh", "-c", `ip rule; ip route show table all proto 69 | grep -v " dev eni"; nft list table inet enipool | grep -v -e elements -e "10\.0\."`)
}
