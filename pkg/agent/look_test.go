package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Limits never change: where the rest of a look is refused again and again, asking
// for them each time would drink from a bucket of which all nodes drink.
func TestALookThatFailsLateKeepsTheLimits(t *testing.T) {
	for method, action := range map[string]string{"Interfaces": sim.ActDescribe, "Subnets": sim.ActSubnets} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
			n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
			refused := sim.Fault{Err: cloud.ErrThrottled}
			if action == sim.ActSubnets {
				w.account.FailNext(action, sim.Fault{}) // the first look at the ENIs asks for the subnet's range
			}
			w.account.FailNext(action, refused, refused, refused)
			n.start(-1, false)
			defer n.stop()
			time.Sleep(30 * time.Second)
			synctest.Wait()
			calls := w.calls()
			if calls["Limits"] != 1 || calls[method] < 4 {
				t.Errorf("%s was refused: calls %v, want Limits once", method, calls)
			}
			if got := n.total(); got != 16 {
				t.Errorf("after %s was refused: pool of %d addresses, want a batch of 16", method, got)
			}
		})
	}
}

// What is looked at on the node costs nobody else anything; what the cloud is asked does.
func TestAQuietNodeDescribesLessOftenThanItRepairs(t *testing.T) {
	askedIn := func(cidr string, every time.Duration) (looks int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{}, subnet("subnet-a", cidr))
			conf := testConfig("n1")
			conf.Resync, conf.Cloud.Describe = time.Minute, every
			n := w.addNode(conf, sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
			n.start(-1, false)
			defer n.stop()
			time.Sleep(10 * time.Minute) // until the pool has come to rest
			synctest.Wait()
			before := w.calls()["Interfaces"]
			time.Sleep(time.Hour)
			synctest.Wait()
			looks = w.calls()["Interfaces"] - before
		})
		return looks
	}
	asked := func(every time.Duration) int { return askedIn("10.0.1.0/24", every) }
	if usual, named := asked(0), asked(4*time.Minute); usual < 50 || named < 12 || named > 18 {
		t.Errorf("in an hour the cloud was asked %d times by resync and %d times by cloud.describe: 4m", usual, named)
	}
	if spare := asked(5 * time.Minute); spare < 2 || spare > 6 {
		t.Errorf("in an hour the cloud was asked %d times by the default of real clouds, which is 5m, and 20m where nothing changes", spare)
	}
	// One more node of 110 pods may take all that is left there, and pods of a third one would wait.
	if tight := askedIn("10.0.1.0/25", 5*time.Minute); tight < 8 || tight > 14 {
		t.Errorf("in an hour the cloud was asked %d times in a subnet that one node can empty, want about 12", tight)
	}
}
