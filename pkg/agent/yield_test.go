package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// twoSubnets is three nodes with 32 addresses for 9 pods each in a subnet that has none left, which may have more in a second
// one, and one that reaches just the full one.
func twoSubnets(t *testing.T, l eni.Limits) (w *world, rich []*testNode, poor *testNode) {
	w = newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"), subnet("subnet-b", "10.0.8.0/21"))
	rich = w.idleNodes(3, l)
	poor = w.addNode(testConfig("poor"), sim.NodeSpec{Limits: eni.Limits{ENIs: 1, V4: 50}, Subnet: "subnet-a"})
	if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
		t.Fatal(err)
	}
	inCluster(poor)
	poor.start(-1, false)
	poor.crowd(5)
	return w, rich, poor
}

// in returns how many addresses the node has in the subnet.
func (n *testNode) in(subnet string) (sum int) {
	for _, nic := range n.attached() {
		if nic.Subnet == subnet {
			sum += len(nic.Addresses)
		}
	}
	return sum
}

// What a node has in a full subnet beyond what its pods use there goes to pods of others there, and comes back in a subnet
// with room.
func TestSpareAddressesMoveFromAFullSubnetToOneWithRoom(t *testing.T) {
	for name, l := range map[string]eni.Limits{"where it has an ENI": {ENIs: 2, V4: 26}, "where it may make one": {ENIs: 2, V4: 50}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, rich, poor := twoSubnets(t, l)
				for _, n := range w.nodes {
					defer n.stop()
				}
				for _, n := range rich {
					if n.total() != 32 || n.in("subnet-b") > 0 != (l.V4 < 32) {
						t.Fatalf("%s has %d addresses, %d in subnet-b", n.name, n.total(), n.in("subnet-b"))
					}
				}
				if waited := poor.untilServed(); waited > 6*time.Minute {
					t.Errorf("%d pods waited %s beside nodes that can have more elsewhere", poor.retry(), waited)
				}
				sleep(time.Hour)
				for _, n := range rich {
					if left := n.retry(); left > 0 || n.total() != 32 || n.in("subnet-a") < 9 {
						t.Errorf("%s has %d addresses, %d in subnet-a, and %d of its 9 pods wait", n.name, n.total(), n.in("subnet-a"), left)
					}
				}
				if err := w.check(); err != nil {
					t.Error(err)
				}
				before := w.calls()
				sleep(2 * time.Hour)
				calls := w.calls()
				for _, op := range []string{"AssignAddresses", "UnassignAddresses", "CreateInterface", "DeleteInterface"} {
					if n := calls[op] - before[op]; n > 4 {
						t.Errorf("%d calls of %s in two quiet hours of four nodes", n, op)
					}
				}
			})
		})
	}
}
