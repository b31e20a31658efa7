package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// sticky is a topology with one address.
const sticky = `apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: guest}
spec:
  podSelector: {matchLabels: {app: guest}}
  subnets: [{id: subnet-b, ranges: [{from: 10.0.2.24, to: 10.0.2.24}]}]
  strategy: {type: Sticky, ttl: 5m}
`

// guest is a pod of it.
const guest = `apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: guest}}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 1
  containers: [{name: web, image: localhost/busybox:1, command: [httpd, -f, -p, "80", -h, /etc]}]
`

// anAddressSticksForAWhile shows whose the one address of a topology is: of the pods of one name, until its time is over, then of who waits for it.
func (c *cluster) anAddressSticksForAWhile() {
	c.t.Helper()
	const addr = "10.0.2.24"
	c.Apply(sticky)
	c.Kubectl("wait", "--for=condition=Ready", "podsubnettopologies/guest", "--timeout=1m")
	has := func(name string) {
		c.t.Helper()
		c.Eventually("pod "+name+" has the address", func() error {
			return c.someone(name, func(p sighting) bool { return isReady(p.Pod) && p.Status.PodIP == addr })
		}, c.warnings, c.claims)
	}
	c.Apply(fmt.Sprintf(guest, "early"))
	has("early")
	c.Apply(fmt.Sprintf(guest, "late"))
	c.isTold("Pod/late", "NoRoom")
	c.Kubectl("delete", "pod", "early", "--wait")
	c.Apply(fmt.Sprintf(guest, "early"))
	has("early")

	c.Kubectl("delete", "pod", "early", "--wait")
	c.Eventually("the time of the claim runs", func() error {
		var claim crd.AddressClaim
		if err := c.Get("/apis/enipool.io/v1alpha1/addressclaims/"+addr, &claim); err != nil || claim.Status.FreeSince == nil {
			return fmt.Errorf("%+v %w", claim.Status, err)
		}
		return nil
	})
	if err := c.someone("late", func(p sighting) bool { return p.Spec.NodeName == "" }); err != nil {
		c.t.Errorf("while the time runs: %v", err)
	}
	// Five minutes are the least. The claim is told that they have passed, in place of waiting for that.
	c.Kubectl("patch", "addressclaim", addr, "--subresource=status", "--type=merge",
		fmt.Sprintf(`--patch={"status": {"freeSince": %q}}`, time.Now().Add(-5*time.Minute).UTC().Format(time.RFC3339)))
	has("late")

	c.Kubectl("delete", "pod", "late", "--wait")
	c.Kubectl("delete", "addressclaim", addr, "--timeout=1m") // by people: nobody is to have it again
	if on := c.carriersOf(netip.MustParseAddr(addr)); len(on) > 0 {
		c.t.Errorf("%s is on %v without a claim", addr, on)
	}
}

// someone returns nil if there is a pod of the name that is so.
func (c *cluster) someone(name string, is func(sighting) bool) error {
	all := c.pods.now()
	at := slices.IndexFunc(all, func(p sighting) bool { return p.Name == name })
	if at < 0 {
		return fmt.Errorf("there is no pod %s", name)
	}
	if p := all[at]; p.DeletionTimestamp != nil || !is(p) {
		return fmt.Errorf("pod %s of node %q has %q: %+v", name, p.Spec.NodeName, p.Status.PodIP, p.Status.Conditions)
	}
	return nil
}

// isTold waits for an event of an object whose name begins so.
func (c *cluster) isTold(object, reason string) {
	c.t.Helper()
	c.Eventually(object+" is told of "+reason, func() error {
		told := c.events(reason)
		at := slices.IndexFunc(told, func(e string) bool { return strings.HasPrefix(e, object) })
		if at < 0 {
			return fmt.Errorf("%q", told)
		}
		c.t.Log(told[at])
		return nil
	}, c.warnings, c.claims)
}

// alone is a subnet that is a topology's alone.
var alone = sim.Subnet{ID: "subnet-c", V4: netip.MustParsePrefix("10.0.3.0/28")}

// exclusive is that subnet as people name it, and the topology.
const exclusive = `apiVersion: enipool.io/v1alpha1
kind: Subnet
metadata: {name: subnet-c}
spec: {use: Exclusive}
---
apiVersion: enipool.io/v1alpha1
kind: PodSubnetTopology
metadata: {name: cache}
spec:
  podSelector: {matchLabels: {app: cache}}
  subnets: [{id: subnet-c}]
  strategy: {type: Elastic}
`

// aSubnetIsOfATopologyAlone lets more pods come than there are addresses, of a topology and of none. Each kind has all that is its own, and nothing of the other's.
func (c *cluster) aSubnetIsOfATopologyAlone() {
	c.t.Helper()
	c.Kubectl("wait", "--for=condition=Ready", "podsubnettopologies/cache", "--timeout=1m")
	for id, n := range map[string]int{"subnet-a": 2, second.ID: 10} { // others of the VPC have the rest
		c.must(c.vpc.Account.LeaveFree(id, n))
	}
	for _, name := range []string{"cache", "more"} {
		c.Apply(strings.ReplaceAll(fmt.Sprintf(web, 50), "web", name))
	}
	c.Eventually("the topology's subnet is full", func() error { return c.fillsAlone() }, c.warnings, c.claims)
	c.isTold("Pod/cache", "NoRoom")
	c.Eventually("the other subnets are full", func() error {
		left := map[string]int{}
		c.vpc.Account.View(0, func(tx *sim.Tx) {
			for _, s := range tx.Subnets() {
				if s.Free > 0 && s.ID != alone.ID {
					left[s.ID] = s.Free
				}
			}
		})
		if len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	}, c.warnings, c.claims)
	for _, id := range []string{"subnet-a", second.ID} {
		c.isTold("Subnet/"+id, "SubnetFull")
	}
	c.Eventually("other pods have all the other addresses", func() error { return c.fillTheRest() }, c.warnings, c.claims)
	for _, p := range c.pods.now() {
		if addr := p.address(); addr.IsValid() && alone.V4.Contains(addr) != (p.Labels["app"] == "cache") {
			c.t.Errorf("pod %s has %s", p.Name, addr)
		}
	}
	c.Kubectl("delete", "deployment/cache", "deployment/more", "--wait")
}

// fillsAlone returns nil once pods have each address of the subnet that no ENI needs for itself and that clouds give to anybody.
func (c *cluster) fillsAlone() error {
	has := map[netip.Addr]bool{}
	for _, p := range c.pods.now() {
		if isReady(p.Pod) {
			has[p.address()] = true
		}
	}
	for _, n := range c.nodes {
		for _, nic := range c.vpc.Account.Attached(n.Name) {
			has[nic.V4.Primary.Addr()] = true
		}
	}
	for addr := range 11 { // the first four and the last are the cloud's
		if at := netip.AddrFrom4([4]byte{10, 0, 3, byte(4 + addr)}); !has[at] {
			return fmt.Errorf("no pod has %s", at)
		}
	}
	return nil
}

// fillTheRest returns nil once pods have every address that nodes have of the other subnets.
func (c *cluster) fillTheRest() error {
	used := map[netip.Addr]bool{}
	for _, p := range c.pods.now() {
		if isReady(p.Pod) {
			used[p.address()] = true
		}
	}
	var idle []netip.Addr
	for _, n := range c.nodes {
		for _, nic := range c.vpc.Account.Attached(n.Name) {
			for _, addr := range nic.Addresses {
				if !used[addr] {
					idle = append(idle, addr)
				}
			}
		}
	}
	if len(idle) > 0 {
		return fmt.Errorf("no pod has %v", idle)
	}
	if !slices.ContainsFunc(c.pods.now(), func(p sighting) bool { return p.Labels["app"] == "more" && !isReady(p.Pod) }) {
		return errors.New("no pod waits")
	}
	return nil
}
