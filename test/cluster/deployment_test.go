package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What most clusters do every day, on two nodes; the steps build on each other.
func TestADeploymentGrowsIsUpdatedAndGoes(t *testing.T) {
	c := start(t, "days")
	a, b := c.addNode("days-a"), c.addNode("days-b")
	c.install(c.overlay(simulated, first, settings, ""))
	clean := map[*node]string{a: a.traces(), b: b.traces()}

	c.Apply(fmt.Sprintf(web, 1))
	c.run(1)
	c.answersByTheAPIServer()
	c.scale(36)
	c.noSandboxFailed()
	c.everyAddressIsRight()
	c.inENIOrder()

	killed := a.killAgent()
	c.scale(100)
	a.agentIsBack(killed)
	c.everyAddressIsRight()
	c.areFilled()
	c.everybodyAnswers()
	c.scale(5)

	c.Apply(hostPods)
	c.hostPodsHaveTheirNodes()
	c.runJob()
	c.upgradeWhileUpdating()
	c.drain(a, b)

	c.Kubectl("delete", "deployment/web", "daemonset/host", "--wait")
	for _, n := range c.nodes {
		n.isClean(clean[n])
	}
}

// answersByTheAPIServer checks that the API server reaches a pod, as its proxy does for people.
func (c *cluster) answersByTheAPIServer() {
	c.t.Helper()
	pod := c.web()[0]
	if got := c.Kubectl("get", "--raw", "/api/v1/namespaces/default/pods/"+pod.Name+":80/proxy/hostname"); strings.TrimSpace(got) != pod.Name {
		c.t.Errorf("by the API server pod %s says that it is %q", pod.Name, got)
	}
}

// hostPods run on every node, in its own network.
const hostPods = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: host}
spec:
  selector: {matchLabels: {app: host}}
  template:
    metadata: {labels: {app: host}}
    spec:
      hostNetwork: true
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers: [{name: host, image: localhost/busybox:1, command: [sleep, 1h]}]
`

func (c *cluster) hostPodsHaveTheirNodes() {
	c.t.Helper()
	c.Kubectl("rollout", "status", "daemonset/host", "--timeout=90s")
	seen := 0
	for _, p := range c.pods.now() {
		if p.Labels["app"] != "host" {
			continue
		}
		seen++
		if want := c.vpc.Account.Attached(p.Spec.NodeName)[0].V4.Primary.Addr(); p.address() != want {
			c.t.Errorf("pod %s has the address %s, its node %s", p.Name, p.address(), want)
		}
	}
	if seen != len(c.nodes) {
		c.t.Errorf("%d pods in the network of %d nodes", seen, len(c.nodes))
	}
	var used []int
	for _, n := range c.nodes {
		used = append(used, n.used()...)
	}
	if sum(used) != 5 {
		c.t.Errorf("addresses are used as in %v by 5 pods that need one", used)
	}
}

// job has pods that end by themselves.
const job = `apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  completions: 6
  parallelism: 3
  template:
    spec:
      automountServiceAccountToken: false
      restartPolicy: Never
      containers: [{name: job, image: localhost/busybox:1, command: [sh, -c, "hostname -i"]}]
`

// runJob checks that pods of a job have addresses, and that they are free again
// although the pods are still there to be looked at.
func (c *cluster) runJob() {
	c.t.Helper()
	c.Apply(job)
	c.Kubectl("wait", "--for=condition=complete", "job/job", "--timeout=90s")
	had := map[string]bool{}
	for ip := range strings.FieldsSeq(c.Kubectl("logs", "--selector=job-name=job", "--tail=-1")) {
		had[ip] = true
	}
	if len(had) != 6 {
		c.t.Errorf("6 pods of a job had the addresses %v", had)
	}
	for _, n := range c.nodes {
		n.eventually("addresses of a finished job are free", func() error {
			for _, a := range n.pool().Addresses {
				if had[a.Address.String()] && a.State != "free" {
					return fmt.Errorf("%s is %s", a.Address, a.State)
				}
			}
			return nil
		})
	}
	c.Kubectl("delete", "job/job", "--wait")
}

// upgradeWhileUpdating replaces every web server and every agent at the same time.
func (c *cluster) upgradeWhileUpdating() {
	c.t.Helper()
	c.scale(30)
	before := map[string]bool{}
	for _, p := range c.web() {
		before[p.Name] = true
	}
	for _, n := range c.nodes {
		n.Import(archive(c.dir, next))
	}
	c.Kubectl("set", "env", "deployment/web", "ROUND=2")
	c.install(c.overlay(simulated, next, settings, ""))
	c.Kubectl("rollout", "status", "deployment/web", "--timeout=3m")
	c.run(30)
	for _, p := range c.web() {
		if before[p.Name] {
			c.t.Errorf("pod %s was not replaced", p.Name)
		}
	}
	for _, n := range c.nodes {
		if out := n.Run("sh", "-c", "/opt/cni/bin/enipool --version 2>&1"); !strings.Contains(out, next) {
			c.t.Errorf("node %s has the plugin %q after the upgrade", n.Name, out)
		}
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
}

// drain empties a node, whose pods go to the other one.
func (c *cluster) drain(from, to *node) {
	c.t.Helper()
	c.Kubectl("drain", from.Name, "--ignore-daemonsets", "--timeout=2m")
	c.run(30)
	if left := on(from, c.web()); len(left) > 0 {
		c.t.Errorf("%d pods are left on node %s", len(left), from.Name)
	}
	if all := on(to, c.web()); len(all) != 30 {
		c.t.Errorf("%d pods are on node %s, want all", len(all), to.Name)
	}
	from.eventually("a drained node gives its addresses back", func() error {
		if used := from.used(); sum(used) > 0 {
			return fmt.Errorf("used by ENI: %v", used)
		}
		return nil
	})
	c.everyAddressIsRight()
	c.everybodyAnswers()
	c.Kubectl("uncordon", from.Name)
}

// traces is what pods would leave on the node.
func (n *node) traces() string {
	return n.Run("sh", "-c", `
		ip -br link | awk '{print "link", $1}' | grep -v "^link eth"
		for file in /run/netns/* /run/enipool/node.cache.waiters/* /run/enipool/node.cache.queue/*; do [ ! -e $file ] || echo "file $file"; done
		iptables-save | grep -e CNI-DN- -e CNI-SN- | sed "s/^/iptables /"
		(ip route show table main | grep -v " eth"; ip route show table 100) 2>/dev/null | sed "s/^/route /"
		true`)
}

// isClean waits until a node without pods looks as it did before the first one.
func (n *node) isClean(before string) {
	n.c.t.Helper()
	n.eventually("no traces of pods", func() error {
		if diff := cmp.Diff(before, n.traces()); diff != "" {
			return errors.New("-before +after:\n" + diff)
		}
		pool := n.pool()
		for _, a := range pool.Addresses {
			if a.State != "free" {
				return fmt.Errorf("%s is %s", a.Address, a.State)
			}
		}
		if len(pool.ENIs) != 1 || len(pool.Addresses) != 16 {
			return fmt.Errorf("%d ENIs with %d addresses, want an idle node's 1 and 16", len(pool.ENIs), len(pool.Addresses))
		}
		_, err := n.ctl("pool", "check")
		return err
	})
}

func sum(list []int) (all int) {
	for _, n := range list {
		all += n
	}
	return all
}
