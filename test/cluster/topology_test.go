package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// kept is the range of the topology in the subnet, for people's firewalls.
var kept = netip.MustParsePrefix("10.0.1.224/28")

// fixed is a topology for the pods of a database, and the database.
const fixed = `apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: db}
spec:
  podSelector: {matchLabels: {app: db}}
  subnets: [{id: subnet-a, ranges: [{from: 10.0.1.226, to: 10.0.1.230}]}]
  strategy: {type: Fixed}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 1
      containers: [{name: db, image: localhost/busybox:1, command: [httpd, -f, -p, "80", -h, /etc]}]
`

// A database keeps its addresses over an update, a time without pods, a drain, and an operator that is killed while they move. Pods beside it are as they were.
func TestAStatefulSetKeepsItsAddresses(t *testing.T) {
	t.Parallel()
	c := start(t, "kept")
	c.addNode("kept-a")
	c.addNode("kept-b")
	c.areInstances()
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize=../../conf/kubernetes/topologies")
	c.Kubectl("label", "namespace", "default", "enipool.io/topologies=enabled")
	c.installOperators("kept", "topologies: true\n")
	c.install(c.overlay(simulated, first, withOperator, ""))
	c.Apply(fmt.Sprintf(web, 10))
	c.run(10)
	beside := c.web()

	c.Apply(fixed)
	c.Kubectl("wait", "--for=condition=Ready", "podsubnettopologies/db", "--timeout=1m")
	c.Kubectl("wait", "--for=condition=Reserved", "subnets.enipool.io/subnet-a", "--timeout=1m") // its range, in the cloud
	had := c.database(nil, 3)
	for name, addr := range had {
		if !kept.Contains(addr) {
			c.t.Errorf("pod %s has %s, which is not of its topology", name, addr)
		}
	}
	c.Kubectl("rollout", "restart", "statefulset/db")
	c.Kubectl("rollout", "status", "statefulset/db", "--timeout=3m")
	c.database(had, 3)

	c.Kubectl("scale", "statefulset/db", "--replicas=0")
	c.database(had, 0)
	c.Kubectl("scale", "statefulset/db", "--replicas=3")
	c.database(had, 3)
	c.areAsBefore(beside)

	for _, kill := range []bool{false, true} {
		from := c.find(c.databasePods()[0]).Spec.NodeName
		c.Kubectl("drain", from, "--ignore-daemonsets", "--pod-selector=app=db", "--timeout=2m")
		if kill {
			c.leader().Run("sh", "-c", "kill -9 $(pidof enipool-operator)")
		}
		c.database(had, 3)
		c.Kubectl("uncordon", from)
	}
	c.areAsBefore(beside)

	c.Kubectl("delete", "statefulset/db", "--wait")
	c.Eventually("claims end with their StatefulSet", func() error {
		if left := c.Kubectl("get", "addressclaims", "--output=name"); left != "" {
			return errors.New(left)
		}
		return nil
	})
	c.areAsBefore(beside)
}

// databasePods returns the database's pods, by name.
func (c *cluster) databasePods() []sighting {
	return slices.DeleteFunc(c.pods.now(), func(p sighting) bool { return p.Labels["app"] != "db" })
}

// database waits for so many ready pods of the database, and checks that each has the address that it had, which its node has. It returns
// the addresses by the pods' names.
func (c *cluster) database(had map[string]netip.Addr, want int) map[string]netip.Addr {
	c.t.Helper()
	now := map[string]netip.Addr{}
	c.Eventually(fmt.Sprintf("%d pods of the database", want), func() error {
		clear(now)
		for _, p := range c.databasePods() {
			if !isReady(p.Pod) || p.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s: %+v", p.Name, p.Status.Conditions)
			}
			now[p.Name] = p.address()
		}
		if len(now) != want {
			return fmt.Errorf("there are %d", len(now))
		}
		return nil
	}, c.warnings, func() string {
		return c.Kubectl("get", "addressclaims,podsubnettopologies,nodenetworks", "--output=wide")
	})
	for _, p := range c.databasePods() {
		if was, is := had[p.Name], now[p.Name]; had != nil && was != is {
			c.t.Errorf("pod %s had %s, and has %s now", p.Name, was, is)
		}
		var on []string
		for _, n := range c.nodes {
			for _, nic := range c.vpc.Account.Attached(n.Name) {
				if slices.Contains(nic.Addresses, now[p.Name]) {
					on = append(on, n.Name)
				}
			}
		}
		if !slices.Equal(on, []string{p.Spec.NodeName}) {
			c.t.Errorf("pod %s of node %s has %s, which is on %s", p.Name, p.Spec.NodeName, now[p.Name], strings.Join(on, ", "))
		}
	}
	return now
}
