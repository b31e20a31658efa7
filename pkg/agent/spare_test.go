package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

func TestANodeOfAnExhaustedSubnetSparesAddressesForPodsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.1.0/26")) // 62 addresses
		for _, name := range []string{"n1", "n2"} {
			n := w.addNode(testConfig(name), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
			inCluster(n)
			n.start(-1, false)
			sleep(10 * time.Second)
			defer n.stop()
		}
		n1, n2 := w.nodes[0], w.nodes[1]
		wait := func(d time.Duration) {
			for range d / time.Second {
				sleep(time.Second)
				n1.retry()
				n2.retry()
			}
		}
		some := n1.crowd(35)
		wait(5 * time.Second) // it is served first
		n2.crowd(35)
		wait(10 * time.Minute) // until they are refused only every few minutes
		if left := n1.retry() + n2.retry(); left < 5 || n1.total() != 36 || !n2.last().Faulty {
			t.Fatalf("%d pods wait; n1 tells %+v, n2 %+v", left, n1.last(), n2.last())
		}
		for _, p := range some[5:] {
			n1.unbind(p)
		}
		n1.forget()
		for _, k := range n1.keys()[5:] {
			n1.del(k)
		}
		wait(4 * time.Minute) // the cool-down, and three or four steps
		if left := n2.retry(); left > 0 || n2.last().Faulty || n1.last().Faulty {
			t.Errorf("%d pods of n2 wait; n1 tells %+v, n2 %+v", left, n1.last(), n2.last())
		}
		if got := n1.total(); got < 16 {
			t.Errorf("n1 keeps %d addresses for 5 pods, and nobody waits for the others", got)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}
