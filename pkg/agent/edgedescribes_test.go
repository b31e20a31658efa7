package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// A subnet at its edge, beside one with room, is no reason to describe twice a minute for ever on nodes that can't give up
// what they have in it: whole ENIs, and prefixes of a subnet that refused none.
func TestDescribesBesideASubnetAtItsEdge(t *testing.T) {
	for name, change := range map[string]func(*testNode) eni.Limits{
		"burstable": func(n *testNode) eni.Limits {
			n.conf.Pool.Mode = pool.Burstable
			return eni.Limits{ENIs: 3, V4: 20}
		},
		"prefixes": func(*testNode) eni.Limits {
			return eni.Limits{ENIs: 2, V4: 1 + 16*8, V4Block: eni.Block{Bits: 28, Size: 16}}
		},
	} {
		for _, flip := range []time.Duration{45 * time.Second, 150 * time.Second, 4 * time.Minute} {
			t.Run(fmt.Sprint(name, " ", flip), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"), subnet("subnet-b", "10.0.8.0/21"))
					n := w.addNode(testConfig("n0"), sim.NodeSpec{Limits: change(&testNode{}), Subnet: "subnet-a"})
					change(n)
					n.conf.Cloud.Describe = 5 * time.Minute
					inCluster(n)
					n.start(-1, false)
					defer n.stop()
					sleep(30 * time.Second)
					n.crowd(5)
					sleep(20 * time.Minute)
					for hour := range 4 {
						before := w.calls()
						for i := range int(time.Hour / flip) { // others take the last 8, and give them back
							if err := w.leaveInA(i % 2 * 8); err != nil {
								t.Fatal(err)
							}
							sleep(flip)
						}
						after := w.calls()
						if d := after["Interfaces"] - before["Interfaces"]; hour > 1 && d > 30 {
							t.Errorf("hour %d: %d describes, %d of subnets, want about 12; %d addresses, eager %+v", hour, d, after["Subnets"]-before["Subnets"], n.total(), n.life.agent.eager)
						}
					}
				})
			})
		}
	}
}
