package agent

import (
	"testing"
	"testing/synctest"
	"time"
)

// Pods that need another ENI find it made: they wait for a call that assigns.
func TestAnENIIsMadeBeforehand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) {
			inCluster(n)
			n.conf.Pool.PreAllocateENI, n.conf.Pool.MaxIPsPerENI = 2, 17
		})
		defer n.stop()
		sleep(20 * time.Second)
		if enis, total := len(n.attached()), n.total(); enis != 2 || total != 17 {
			t.Fatalf("%d ENIs with %d addresses, want 2 with 17", enis, total)
		}
		created, assigned := w.calls()["CreateInterface"], w.calls()["AssignAddresses"]
		n.crowd(20)
		sleep(20 * time.Second)
		if made := w.calls()["CreateInterface"] - created; made != 0 || n.total() != 32 {
			t.Errorf("%d ENIs made for 20 pods, %d addresses", made, n.total())
		}
		if w.calls()["AssignAddresses"] == assigned {
			t.Error("nothing was assigned")
		}
	})
}

// What the node may have of its instance is what the file says now.
func TestTheNodesOwnLimitsAreReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) {
			inCluster(n)
			n.conf.Pool.MaxAllocateENI, n.conf.Pool.MaxIPsPerENI = 1, 17
		})
		n.crowd(20)
		sleep(20 * time.Second)
		if enis, total := len(n.attached()), n.total(); enis != 1 || total != 16 {
			t.Fatalf("%d ENIs with %d addresses, want 1 with 16", enis, total)
		}
		n.stop()
		conf := n.life.agent.conf
		conf.Pool.MaxAllocateENI = 0
		n.life.agent.Reload(conf)
		n.conf = conf
		n.start(-1, false)
		defer n.stop()
		sleep(20 * time.Second)
		if enis, total := len(n.attached()), n.total(); enis != 2 || total != 32 {
			t.Errorf("%d ENIs with %d addresses, want 2 with 32", enis, total)
		}
	})
}
