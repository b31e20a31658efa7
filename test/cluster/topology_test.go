package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// second is a small subnet beside the nodes' own.
var second = sim.Subnet{ID: "subnet-b", V4: netip.MustParsePrefix("10.0.2.0/27")}

// kept are the addresses of the database, for people's firewalls: the first subnet has them for two of its pods.
var kept = []netip.Addr{netip.MustParseAddr("10.0.1.226"), netip.MustParseAddr("10.0.1.227"), netip.MustParseAddr("10.0.2.20")}

// fixed is a topology for the pods of a database, and the database. Each pod says who it is.
const fixed = `apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: db}
spec:
  podSelector: {matchLabels: {app: db}}
  subnets:
  - {id: subnet-a, ranges: [{from: 10.0.1.226, to: 10.0.1.227}]}
  - {id: subnet-b, ranges: [{from: 10.0.2.20, to: 10.0.2.22}]}
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
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: db}}}
      containers:
      - name: db
        image: localhost/busybox:1
        command: [sh, -c, 'mkdir /www && echo $NAME $UID >/www/who && exec httpd -f -p 80 -h /www']
        env:
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
`

// A database keeps its addresses, in two subnets and on two nodes, while clients go on connecting to them: over an update, a time without pods, moves in
// which operators are killed or the API server is away, and the death of a node. Then pods of other kinds of topologies come. Pods beside them are as they were.
func TestAStatefulSetKeepsItsAddresses(t *testing.T) {
	t.Parallel()
	c := start(t, "kept")
	c.addSubnet(second)
	c.addSubnet(alone)
	c.addNode("kept-a")
	c.addNode("kept-b")
	c.areInstances()
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize=../../conf/kubernetes/topologies")
	c.Kubectl("label", "namespace", "default", "enipool.io/topologies=enabled")
	c.installOperators("kept", "topologies: true\n")
	c.Apply(exclusive)
	c.install(c.overlay(simulated, first, withOperator, c.patientPlugin()))
	c.Apply(fmt.Sprintf(web, 10))
	c.run(10)
	beside := c.web()

	c.Apply(fixed)
	c.Kubectl("wait", "--for=condition=Ready", "podsubnettopologies/db", "--timeout=1m")
	c.Kubectl("wait", "--for=condition=Reserved", "subnets.enipool.io/subnet-a", "subnets.enipool.io/subnet-b", "--timeout=1m") // its ranges, in the cloud
	db := &database{cluster: c}
	db.had = db.pods(3)
	for i, addr := range kept {
		if name := fmt.Sprint("db-", i); db.had[name] != addr {
			c.t.Errorf("pod %s has %s, want the first of its topology that is left, %s", name, db.had[name], addr)
		}
	}
	for _, n := range c.nodes {
		if len(on(n, db.list())) == 0 {
			c.t.Errorf("no pod of the database is on node %s", n.Name)
		}
	}
	db.callers = c.call(db.had)
	c.Kubectl("rollout", "restart", "statefulset/db")
	c.Kubectl("rollout", "status", "statefulset/db", "--timeout=3m")
	db.serves(c.nodes...)

	c.Kubectl("scale", "statefulset/db", "--replicas=0")
	db.pods(0)
	c.Kubectl("scale", "statefulset/db", "--replicas=3")
	db.serves(c.nodes...)
	c.areAsBefore(beside)

	db.movesWithoutTheAPIServer(beside)
	db.outlivesItsNode()
	c.areAsBefore(beside)
	db.movesWhileOperatorsAreKilled()
	c.areAsBefore(beside)

	db.callers.end()
	c.Kubectl("delete", "statefulset/db", "--wait")
	c.anAddressSticksForAWhile()
	c.aSubnetIsOfATopologyAlone()
	c.areAsBefore(beside)
	c.Eventually("claims end with their StatefulSet", func() error {
		if left := c.Kubectl("get", "addressclaims", "--output=name"); left != "" {
			return errors.New(left)
		}
		return nil
	})
	for _, addr := range kept {
		if on := c.carriersOf(addr); len(on) > 0 {
			c.t.Errorf("%s is on %v without a claim", addr, on)
		}
	}
}

// patientPlugin is more of an overlay: ADDs wait for as long as it takes until another operator leads. Else the kubelet tries again when it thinks fit.
func (c *cluster) patientPlugin() string {
	c.t.Helper()
	conflist, err := os.ReadFile("../../conf/kubernetes/base/10-enipool.conflist")
	c.must(err)
	patient := strings.Replace(string(conflist), `"waitForAddress": "5s"`, `"waitForAddress": "60s"`, 1)
	if patient == string(conflist) {
		c.t.Fatalf("the conflist names no wait of 5s:\n%s", conflist)
	}
	return fmt.Sprintf(`patches:
- target: {kind: ConfigMap, name: enipool-agent}
  patch: |
    - {op: replace, path: /data/10-enipool.conflist, value: %q}
`, patient)
}

// database is the StatefulSet, and what is to be true of it.
type database struct {
	*cluster
	had     map[string]netip.Addr // by the names of its pods
	callers *callers
}

// list returns its pods, by name.
func (db *database) list() []sighting {
	return slices.DeleteFunc(db.cluster.pods.now(), func(p sighting) bool { return p.Labels["app"] != "db" })
}

// named returns its pod of the name, nil if there is none now.
func (db *database) named(name string) *sighting {
	all := db.list()
	if at := slices.IndexFunc(all, func(p sighting) bool { return p.Name == name }); at >= 0 {
		return &all[at]
	}
	return nil
}

// pods waits for so many ready pods, and checks that each has the address that it had, which its node has and no other. It returns the
// addresses by the pods' names.
func (db *database) pods(want int) map[string]netip.Addr {
	db.t.Helper()
	now := map[string]netip.Addr{}
	db.Eventually(fmt.Sprintf("%d pods of the database", want), func() error {
		clear(now)
		for _, p := range db.list() {
			if !isReady(p.Pod) || p.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s of node %s: %+v", p.Name, p.Spec.NodeName, p.Status.Conditions)
			}
			now[p.Name] = p.address()
		}
		if len(now) != want {
			return fmt.Errorf("there are %d", len(now))
		}
		return nil
	}, db.warnings, db.claims)
	for _, p := range db.list() {
		if was, is := db.had[p.Name], now[p.Name]; db.had != nil && was != is {
			db.t.Errorf("pod %s had %s, and has %s now", p.Name, was, is)
		}
		if on := db.carriersOf(now[p.Name]); !slices.Equal(on, []string{p.Spec.NodeName}) {
			db.t.Errorf("pod %s of node %s has %s, which is on %s", p.Name, p.Spec.NodeName, now[p.Name], strings.Join(on, ", "))
		}
	}
	return now
}

// serves waits until its three pods are ready and are what answers at their addresses, as seen from these nodes.
func (db *database) serves(from ...*node) {
	db.t.Helper()
	db.pods(3)
	db.Eventually("each pod of the database answers", func() error { return db.callers.reach(db.list(), from) }, db.claims)
}

// claims are all that is known of addresses, for who looks at a failure.
func (c *cluster) claims() string {
	out, err := c.TryKubectl("get", "addressclaims,podsubnettopologies,nodenetworks,subnets.enipool.io", "--output=wide")
	if err != nil {
		return err.Error()
	}
	return out
}

// carriersOf returns the nodes whose ENIs have the address.
func (c *cluster) carriersOf(addr netip.Addr) (names []string) {
	for _, n := range c.nodes {
		for _, nic := range c.vpc.Account.Attached(n.Name) {
			if slices.Contains(nic.Addresses, addr) {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
