package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// reservedWorld is a node whose addresses come in blocks, in a subnet that shows so many
// addresses beside those that it may have reserved for blocks.
func reservedWorld(t *testing.T, shows, perENI int) (*world, *testNode) {
	return one(t, slashes28(perENI), func(n *testNode) {
		inCluster(n)
		n.shows = &shows
	})
}

// A subnet all of which is reserved for prefixes shows nothing.
func TestANodeGrowsByBlocksThatItsSubnetDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := reservedWorld(t, 0, 6)
		defer n.stop()
		n.crowd(50)
		sleep(20 * time.Second)
		if left := n.retry(); left > 0 || n.total()%16 != 0 {
			t.Errorf("%d of 50 pods wait, with %d addresses", left, n.total())
		}
		if calls := w.calls(); calls["CreateInterface"] > 0 {
			t.Errorf("an ENI was tried without a primary address to be had: %v", calls)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// The few that are not reserved are for primary addresses: a new ENI is made, and of
// blocks alone, where single addresses would take the places of those.
func TestANewENIBeginsWithBlocksThatItsSubnetDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := reservedWorld(t, 5, 2)
		defer n.stop()
		n.crowd(50)
		sleep(2 * time.Minute)
		if left := n.retry(); left > 0 {
			t.Errorf("%d of 50 pods wait, with %d addresses", left, n.total())
		}
		for _, nic := range w.account.Snapshot().Nodes["n1"] {
			if len(nic.Addresses)%16 != 0 {
				t.Errorf("%s has %d addresses, some of them single ones", nic.ID, len(nic.Addresses))
			}
		}
	})
}

// What really has none is asked once a back-off: 10 s at most at first, 5 min later, half of that on average.
func TestASubnetThatMayHideBlocksAndHasNoneIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := reservedWorld(t, 0, 6)
		defer n.stop()
		sleep(time.Minute)
		if err := w.account.SetUnmanaged("subnet-a", 10_000); err != nil {
			t.Fatal(err)
		}
		n.crowd(47)
		before := w.calls()["AssignAddresses"]
		for range 60 {
			sleep(time.Minute)
			n.retry()
		}
		calls := w.calls()
		if tries := calls["AssignAddresses"] - before; tries < 5 || tries > 40 || calls["CreateInterface"] > 0 {
			t.Errorf("in an hour %d tries of an empty subnet, and %d new ENIs", tries, calls["CreateInterface"])
		}
		if err := w.account.SetUnmanaged("subnet-a", 0); err != nil {
			t.Fatal(err)
		}
		sleep(7 * time.Minute)
		if left := n.retry(); left > 0 {
			t.Errorf("7 minutes after there is room %d of 47 pods wait", left)
		}
		// And it keeps spare ones again, though the subnet never shows any.
		sleep(20 * time.Minute)
		if n.total() != 64 {
			t.Errorf("%d addresses for 47 pods, want 64", n.total())
		}
	})
}

// A subnet that shows room for a new ENI with blocks is surer than one that may hide it.
func TestANewENIComesWhereTheSubnetShowsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/24"), subnet("subnet-b", "10.0.3.0/24"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: slashes28(2), Subnet: "subnet-a"})
		inCluster(n)
		few := 5
		n.shows, n.showsOf = &few, "subnet-a"
		must(t, w.account.SetUnmanaged("subnet-b", 251-20))
		n.start(-1, false)
		sleep(30 * time.Second)
		n.crowd(45)
		sleep(2 * time.Minute)
		if left := n.retry(); left > 0 {
			t.Errorf("%d of 45 pods wait", left)
		}
		for _, nic := range w.account.Snapshot().Nodes["n1"][1:] {
			if nic.Subnet != "subnet-b" {
				t.Errorf("an ENI was made in %s", nic.Subnet)
			}
		}
		n.stop()
	})
}
