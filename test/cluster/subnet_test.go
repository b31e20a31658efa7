package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/health"
	enipool "github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/test/lab"
	corev1 "k8s.io/api/core/v1"
)

func TestASubnetRunsOutAndIsExtended(t *testing.T) {
	t.Parallel()
	c := start(t, "dry")
	for _, name := range []string{"dry-a", "dry-b"} {
		c.addNode(name)
	}
	c.install(c.overlay(simulated, first, settings, ""))
	c.Apply(fmt.Sprintf(web, 4))
	c.run(4)
	for _, n := range c.nodes {
		n.isFaulty(corev1.ConditionFalse, health.AddressesAvailable)
	}

	c.describesAreLate()
	c.othersTakeAll()
	c.Kubectl("scale", "deployment/web", "--replicas=40")
	for _, n := range c.nodes {
		n.isFaulty(corev1.ConditionTrue, health.SubnetExhausted)
	}
	c.vpc.Account.SetFaults()
	c.podsAreWarned()

	c.scale(10)
	for _, n := range c.nodes {
		n.eventually("spare addresses go back to a subnet that has none", func() error {
			// Whichever node releases first: there is none for the other one to see either.
			c.othersTakeAll()
			pods, has, room := len(on(n, c.web())), len(n.pool().Addresses), n.room()
			if has > pods+1 || room != fmt.Sprint(has) {
				return fmt.Errorf("it has %d addresses for %d pods, and room for %s", has, pods, room)
			}
			return nil
		})
		n.isFaulty(corev1.ConditionFalse, health.AddressesAvailable)
	}
	before := c.web()
	c.othersTakeAll()
	c.Kubectl("scale", "deployment/web", "--replicas=30")
	c.nodesAreNotOverfilled(30)

	c.must(c.vpc.Account.AddSubnet(sim.Subnet{ID: "subnet-b", V4: netip.MustParsePrefix("10.0.2.0/24")}))
	c.run(30)
	for _, n := range c.nodes {
		n.isFaulty(corev1.ConditionFalse, health.AddressesAvailable)
	}
	for _, p := range before {
		if is := c.find(p); is == nil || is.Status.PodIP != p.Status.PodIP {
			c.t.Errorf("pod %s had %s on a node without addresses and is now %+v", p.Name, p.Status.PodIP, is)
		}
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
	for _, kind := range []string{health.SubnetExhausted, health.AddressesAvailable} {
		if told := c.events(kind); !slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, "Node/") }) {
			c.t.Errorf("no event %s of a node in %q", kind, told)
		} else {
			c.t.Log(kind, told[0])
		}
	}
}

// othersTakeAll leaves nothing in the subnet.
func (c *cluster) othersTakeAll() {
	c.t.Helper()
	c.must(c.vpc.Account.SetUnmanaged(lab.Subnet.ID, 256))
}

// describesAreLate keeps the nodes from seeing what a subnet has before they are refused:
// a node that knows of no address for more pods is bound no more than it has for.
func (c *cluster) describesAreLate() {
	c.vpc.Account.SetFaults(sim.Chance{Action: sim.ActSubnets, Percent: 100, Fault: sim.Fault{Delay: 8 * time.Second}})
	time.Sleep(2 * latency[""].Base) // those under way end
}

// isFaulty waits for a node's condition, and for the taint that belongs to it.
func (n *node) isFaulty(want corev1.ConditionStatus, reason string) {
	n.c.t.Helper()
	n.eventually(fmt.Sprintf("%s is %s, %s", enipool.Condition, want, reason), func() error {
		is := n.object()
		tainted := slices.ContainsFunc(is.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == enipool.Taint && t.Effect == corev1.TaintEffectNoSchedule
		})
		at := slices.IndexFunc(is.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == enipool.Condition })
		switch {
		case at < 0:
			return errors.New("there is no such condition")
		case is.Status.Conditions[at].Status != want || is.Status.Conditions[at].Reason != reason:
			return fmt.Errorf("it is %+v", is.Status.Conditions[at])
		case tainted != (want == corev1.ConditionTrue):
			return fmt.Errorf("taints: %+v", is.Spec.Taints)
		}
		return nil
	})
}

// podsAreWarned waits until a pod tells why it has no address.
func (c *cluster) podsAreWarned() {
	c.t.Helper()
	c.Eventually("a pod is told why it waits", func() error {
		told := c.events(health.SubnetExhausted)
		if !slices.ContainsFunc(told, func(e string) bool {
			return strings.HasPrefix(e, "Pod/web") && strings.Contains(e, "no free ipv4 address")
		}) {
			return fmt.Errorf("events: %q", told)
		}
		return nil
	})
}

// nodesAreNotOverfilled waits until the scheduler says that no node has addresses for
// more of so many pods.
func (c *cluster) nodesAreNotOverfilled(all int) {
	c.t.Helper()
	c.Eventually("the scheduler keeps pods for which there are no addresses", func() error {
		room := 0
		for _, n := range c.nodes {
			room += len(n.pool().Addresses)
		}
		bound := slices.DeleteFunc(c.web(), func(p sighting) bool { return p.Spec.NodeName == "" })
		told := strings.Join(c.events("FailedScheduling"), "\n")
		if len(c.web()) != all || len(bound) > room || !strings.Contains(told, "Insufficient "+string(enipool.Resource)) {
			return fmt.Errorf("%d pods are bound to nodes with %d addresses; the scheduler says %s", len(bound), room, told)
		}
		return nil
	})
}
