package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// A running node is given to the operators and taken back, as conf/kubernetes/README.md says, while its pods run and a connection to one of
// them stays open; the other node stays as it is. Meanwhile the operator that leads is killed.
func TestANodeIsGivenToAnOperatorAndTakenBack(t *testing.T) {
	t.Parallel()
	c := start(t, "given")
	a, b := c.addNode("given-a"), c.addNode("given-b")
	c.areInstances()
	c.install(c.overlay(simulated, first, settings, ""))
	c.Apply(fmt.Sprintf(web, 10) + fmt.Sprintf(echo, a.Name))
	c.installOperators("", "")
	c.run(10)
	line := c.dialEcho(b)

	before := c.web()
	c.Kubectl("apply", "--server-side", "--kustomize="+c.overlay(simulated, first, withOperator, ""))
	c.ctl("migrate", "node", a.Name)
	line.lives("after the node was given to an operator")
	c.areAsBefore(before)
	if n := a.network(); n.Status.Mode != crd.Operator || n.Status.Instance != a.Name {
		c.t.Errorf("node %s: %+v", a.Name, n.Status)
	}
	a.closeCloud() // now only the operators have a way to it
	leader := c.leader()
	leader.Run("sh", "-c", "kill -9 $(pidof enipool-operator)")
	c.grows(a, 40)
	line.lives("with new pods beside it")
	if now := c.leader(); now == leader {
		c.t.Logf("node %s leads again", now.Name)
	}

	before = c.web()
	a.openCloud()
	c.Kubectl("apply", "--server-side", "--kustomize="+c.overlay(simulated, first, settings, ""))
	c.ctl("migrate", "node", a.Name, "--to=self")
	line.lives("after the agent has taken the node back")
	c.areAsBefore(before)
	if n := a.network(); n.Spec.Mode != crd.Self || n.Status.Mode != crd.Self {
		c.t.Errorf("node %s: %+v", a.Name, n)
	}
	if all := c.Kubectl("get", "nodenetworks", "--output=name"); strings.TrimSpace(all) != "nodenetwork.enipool.io/"+a.Name {
		c.t.Errorf("there are %s: the agent of %s has asked no operator", all, b.Name)
	}
	c.Kubectl("--namespace=kube-system", "scale", "deployment/enipool-operator", "--replicas=0")
	c.grows(a, 76)
	line.lives("with new pods of the agent's")
}

// withOperator is settings for agents that leave the calls to an operator.
var withOperator = strings.Replace(settings, "cloud:\n", "cloud:\n  provider: operator\n", 1)

// grows starts so many web servers that the node needs ENIs that it has not.
func (c *cluster) grows(n *node, pods int) {
	c.t.Helper()
	before := len(c.vpc.Account.Attached(n.Name))
	// Of pods that have waited for addresses a moment ago the node may have the taint yet: the scheduler would send none.
	c.Eventually("node "+n.Name+" takes pods", func() error {
		if taints, err := c.TryKubectl("get", "node", n.Name, "--output=jsonpath={.spec.taints[*].key}"); err != nil || strings.Contains(taints, "enipool.io/") {
			return fmt.Errorf("it has the taints %q %w", taints, err)
		}
		return nil
	})
	c.scale(pods)
	if now := len(c.vpc.Account.Attached(n.Name)); now <= before {
		c.t.Errorf("node %s has %d ENIs for %d of %d web servers, had %d", n.Name, now, len(on(n, c.web())), pods, before)
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
}

// areAsBefore checks that the pods run on with the addresses that they had.
func (c *cluster) areAsBefore(before []sighting) {
	c.t.Helper()
	for _, p := range before {
		is := c.find(p)
		if is == nil || is.Status.PodIP != p.Status.PodIP || is.Status.ContainerStatuses[0].RestartCount != 0 {
			c.t.Errorf("pod %s was %+v and is now %+v", p.Name, p.Status, is)
		}
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
}

// leader returns the node of the operator that leads.
func (c *cluster) leader() *node {
	c.t.Helper()
	holder, _, _ := strings.Cut(c.Kubectl("--namespace=kube-system", "get", "lease", "enipool-operator", "--output=jsonpath={.spec.holderIdentity}"), "_")
	at := slices.IndexFunc(c.nodes, func(n *node) bool { return n.Name == holder })
	if at < 0 {
		c.t.Fatalf("the lease names %q, which is no node", holder)
	}
	return c.nodes[at]
}

// network returns the node's NodeNetwork.
func (n *node) network() (is crd.NodeNetwork) {
	n.c.t.Helper()
	n.c.must(n.c.Get("/apis/enipool.io/v1alpha1/nodenetworks/"+n.Name, &is))
	return is
}
