package agent

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// leaveInA lets others have all but so many IPv4 addresses of subnet-a, a /22.
func (w *world) leaveInA(free int) error {
	used := 0
	for a := range w.account.Snapshot().Owners {
		if netip.MustParsePrefix("10.0.0.0/22").Contains(a) {
			used++
		}
	}
	return w.account.SetUnmanaged("subnet-a", 1022-used-free)
}

// An ENI in another subnet that is full is no room: a node that can get addresses in a full subnet alone looks at it as often
// as one that has no other ENI, and its pods wait no longer.
func TestAFullENIElsewhereIsNoRoom(t *testing.T) {
	var late []string
	for _, elsewhere := range []bool{false, true} {
		for seed := range uint64(3) {
			synctest.Test(t, func(t *testing.T) {
				const describe = 5 * time.Minute
				w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"), subnet("subnet-b", "10.0.8.0/21"))
				add := func(name string, l eni.Limits) *testNode {
					n := w.addNode(testConfig(name), sim.NodeSpec{Limits: l, Subnet: "subnet-a"})
					n.conf.Cloud.Describe, n.seed, n.serial = describe, seed, 1000*len(w.nodes)
					inCluster(n)
					n.start(-1, false)
					return n
				}
				for i := range 2 { // rich
					n := add(fmt.Sprint("n", i), eni.Limits{ENIs: 1, V4: 50})
					defer n.stop()
				}
				sleep(30 * time.Second)
				for _, n := range w.nodes {
					n.crowd(9)
				}
				sleep(10 * time.Minute)
				l := eni.Limits{ENIs: 1, V4: 50}
				if elsewhere {
					l = eni.Limits{ENIs: 2, V4: 40}
				}
				poor := add("poor", l)
				defer poor.stop()
				sleep(20 * time.Second)
				for _, free := range []int{3, 0} { // subnet-a comes to its end slowly: nobody has put off describes
					if err := w.leaveInA(free); err != nil {
						t.Fatal(err)
					}
					sleep(time.Hour * time.Duration(free) / 3)
				}
				for i := 0; elsewhere && poor.total() < 16+39 && i < 80; i++ {
					poor.serial += 10
					poor.crowd(1)
					sleep(20 * time.Second)
					poor.retry()
				}
				free := func() int {
					poor.mu.Lock()
					defer poor.mu.Unlock()
					return countDemand(poor.cached, w.now(), 0).free
				}
				poor.serial += 100
				poor.crowd(free() + 10)
				before := w.calls()["Interfaces"]
				waited := poor.untilServed()
				keeps := 0
				for _, n := range w.nodes[:2] {
					keeps += n.total() - 10
				}
				line := fmt.Sprintf("full ENI elsewhere %v, seed %d: 10 pods waited %s beside %d spare addresses; the three nodes described %d times", elsewhere, seed, waited, keeps, w.calls()["Interfaces"]-before)
				if waited > fairWithin(describe) {
					late = append(late, line)
				}
				if err := w.check(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for _, line := range late {
		t.Error(line)
	}
}
