package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// A node whose ENI is full needs two addresses of the subnet for its pods, one of them for a new ENI itself. Nodes that offer
// one at a time and wait until that is taken never give it two.
func TestAnOfferIsEnoughForANewENI(t *testing.T) {
	for _, rich := range []int{1, 2} {
		t.Run(fmt.Sprint(rich, " nodes with spare addresses"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"))
				add := func(name string, l eni.Limits, pods int) *testNode {
					n := w.addNode(testConfig(name), sim.NodeSpec{Limits: l, Subnet: "subnet-a"})
					n.serial = 1000 * len(w.nodes)
					inCluster(n)
					n.start(-1, false)
					sleep(30 * time.Second)
					n.crowd(pods)
					sleep(10 * time.Minute)
					return n
				}
				for i := range rich {
					n := add(fmt.Sprint("n", i), eni.Limits{ENIs: 1, V4: 50}, 9)
					defer n.stop()
				}
				n := w.addNode(testConfig("poor"), sim.NodeSpec{Limits: eni.Limits{ENIs: 2, V4: 10}, Subnet: "subnet-a"})
				n.conf.Pool.MaxAllocateENI = 1 // until its ENI is full, and it has no other
				inCluster(n)
				n.serial = 9000
				n.start(-1, false)
				sleep(30 * time.Second)
				n.crowd(9)
				sleep(time.Minute)
				if left := n.retry(); left > 0 || n.total() != 9 {
					t.Fatalf("%d wait, %d addresses", left, n.total())
				}
				if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
					t.Fatal(err)
				}
				n.stop()
				n.conf.Pool.MaxAllocateENI = 0
				n.start(-1, false)
				defer n.stop()
				n.serial += 100
				n.crowd(5)
				waited := n.untilServed()
				if waited > fairWithin(time.Minute) {
					t.Errorf("%d pods waited %s; %+v", n.retry(), waited, w.account.Snapshot().Subnets)
					for _, o := range w.nodes {
						t.Logf("%s has %d addresses", o.name, o.total())
					}
				}
			})
		})
	}
}
