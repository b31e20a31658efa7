package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	enipool "github.com/enipool/enipool/pkg/node"
	corev1 "k8s.io/api/core/v1"
)

// web is a Deployment of web servers.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: localhost/busybox:1
        command: [httpd, -f, -p, "80", -h, /etc]
`

// scale wants so many web servers and waits until they are what there is.
func (c *cluster) scale(n int) {
	c.t.Helper()
	c.Kubectl("scale", "deployment/web", fmt.Sprint("--replicas=", n))
	c.run(n)
}

// run waits until so many web servers are ready and none is on its way out.
func (c *cluster) run(n int) {
	c.t.Helper()
	c.Eventually(fmt.Sprintf("%d web servers", n), func() error {
		ready, all := 0, c.web()
		for _, p := range all {
			if isReady(p.Pod) {
				ready++
			}
		}
		if ready != n || len(all) != n {
			return fmt.Errorf("%d of %d pods are ready", ready, len(all))
		}
		return nil
	}, c.warnings)
}

// web returns the web servers that there are.
func (c *cluster) web() []sighting {
	return slices.DeleteFunc(c.pods.now(), func(p sighting) bool { return p.Labels["app"] != "web" })
}

// on returns those of the pods that run on the node.
func on(n *node, pods []sighting) []sighting {
	return slices.DeleteFunc(slices.Clone(pods), func(p sighting) bool { return p.Spec.NodeName != n.Name })
}

// everyAddressIsRight checks that each web server has an address of an ENI of its
// node, and one of its own.
func (c *cluster) everyAddressIsRight() {
	c.t.Helper()
	owner := map[netip.Addr]string{}
	for _, n := range c.nodes {
		var has []netip.Addr
		for _, nic := range c.vpc.Account.Attached(n.Name) {
			has = append(has, nic.Addresses...)
		}
		for _, p := range on(n, c.web()) {
			a := p.address()
			if !slices.Contains(has, a) {
				c.t.Errorf("pod %s has %s, which is on no ENI of node %s", p.Name, a, n.Name)
			}
			if owner[a] != "" {
				c.t.Errorf("pods %s and %s have %s", owner[a], p.Name, a)
			}
			owner[a] = p.Name
		}
	}
}

// inENIOrder checks that no pod has an address of an ENI while an earlier one has a
// free one. It holds as long as no pod has gone and no two ENIs were made at once.
func (c *cluster) inENIOrder() {
	c.t.Helper()
	for _, n := range c.nodes {
		free := false
		for _, nic := range n.pool().ENIs {
			if nic.Used > 0 && free {
				c.t.Errorf("node %s: ENI %d is used although an earlier one has free addresses", n.Name, nic.Index)
			}
			free = free || nic.Free > 0
		}
		c.t.Logf("node %s: used addresses by ENI: %v", n.Name, n.used())
	}
}

// areFilled checks that of the ENIs that are used only one is not full: of two that
// are made at once the later may be there first.
func (c *cluster) areFilled() {
	c.t.Helper()
	for _, n := range c.nodes {
		open := 0
		for _, nic := range n.pool().ENIs {
			if nic.Used > 0 && nic.Free > 0 {
				open++
			}
		}
		if open > 1 {
			c.t.Errorf("node %s: %d ENIs are used in part", n.Name, open)
		}
		c.t.Logf("node %s: used addresses by ENI: %v", n.Name, n.used())
	}
}

// used counts the used addresses of each ENI.
func (n *node) used() (counts []int) {
	for _, nic := range n.pool().ENIs {
		counts = append(counts, nic.Used)
	}
	return counts
}

// pool returns what the node cache holds.
func (n *node) pool() (r enipool.Report) {
	n.c.t.Helper()
	out, err := n.ctl("pool", "show", "--output=json")
	n.c.must(err)
	n.c.must(json.Unmarshal([]byte(out), &r))
	return r
}

// everybodyAnswers checks that a pod of each node reaches all the others.
func (c *cluster) everybodyAnswers() {
	c.t.Helper()
	all := c.web()
	for _, n := range c.nodes {
		from := on(n, all)
		if len(from) == 0 {
			continue
		}
		script := "for ip in"
		for _, p := range all {
			if p.UID != from[0].UID {
				script += " " + p.Status.PodIP
			}
		}
		script += "; do timeout 5 wget -q -O /dev/null http://$ip/hostname || echo $ip; done"
		if silent := c.Kubectl("exec", from[0].Name, "--", "sh", "-c", script); silent != "" {
			c.t.Errorf("pod %s of node %s does not reach\n%s", from[0].Name, n.Name, silent)
		}
	}
}

// events returns the objects and words of all events with the reason.
func (c *cluster) events(reason string) (found []string) {
	c.t.Helper()
	for line := range strings.Lines(c.Kubectl("get", "events", "--all-namespaces", "--field-selector=reason="+reason,
		`--output=jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name}: {.message}{"\n"}{end}`)) {
		found = append(found, strings.TrimSpace(line))
	}
	return found
}

// noSandboxFailed checks that no pod was refused a network.
func (c *cluster) noSandboxFailed() {
	c.t.Helper()
	if failed := c.events("FailedCreatePodSandBox"); len(failed) > 0 {
		c.t.Errorf("sandboxes failed:\n%s", strings.Join(failed, "\n"))
	}
}

// warnings are what pods that are not ready wait for, for who looks at a failure.
func (c *cluster) warnings() string {
	out, err := c.TryKubectl("get", "events", "--field-selector=type=Warning", "--sort-by=.lastTimestamp",
		`--output=jsonpath={range .items[*]}{.involvedObject.name}: {.reason}: {.message}{"\n"}{end}`)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// eventually waits for what a node comes to, and shows its pool if it does not.
func (n *node) eventually(what string, done func() error) {
	n.c.t.Helper()
	n.c.Eventually(fmt.Sprintf("node %s: %s", n.Name, what), done, func() string {
		shown, err := n.ctl("pool", "show")
		return fmt.Sprint(shown, err)
	})
}

// object returns the Node object.
func (n *node) object() (is corev1.Node) {
	n.c.t.Helper()
	n.c.must(n.c.Get("/api/v1/nodes/"+n.Name, &is))
	return is
}
