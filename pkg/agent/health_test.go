package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/status"
)

// crowd binds that many pods and lets them ask for their addresses.

func (n *testNode) crowd(count int) (pods []eni.Pod) {
	for i := range count {
		p := n.bind(fmt.Sprintf("pod-%d-%d", n.serial, i))
		pods = append(pods, p)
		_ = n.sandbox(p)
	}
	return pods
}

func TestAnExhaustedSubnetIsAFaultUntilThereIsRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, inCluster)
		defer n.stop()
		if r := n.last(); r.Faulty || r.Reason != health.AddressesAvailable || r.Capacity != 110 {
			t.Fatalf("a node that is well: %+v", r)
		}
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		n.crowd(19)
		sleep(25 * time.Second)
		if r := n.last(); r.Faulty {
			t.Errorf("before the grace is over: %+v", r)
		}
		sleep(8 * time.Second)
		r := n.last()
		if !r.Faulty || r.Reason != health.SubnetExhausted || !r.Taint || r.Capacity != 16 {
			t.Errorf("after the grace: %+v", r)
		}
		for _, part := range []string{"3 pods have no address", "16 there, 16 used, 0 free", "demand 19", "at most 110", "subnet-a", "another subnet"} {
			if !strings.Contains(r.Message, part) {
				t.Errorf("message lacks %q: %s", part, r.Message)
			}
		}
		if st := n.status(); st.Health != r || st.FaultSince.IsZero() {
			t.Errorf("status %+v", st)
		}
		sleep(20 * time.Minute)
		if got := n.last(); !got.Faulty || got.Reason != health.SubnetExhausted || len(n.api.told) > 4+20 {
			t.Errorf("while it lasts: %+v, told %d times", got, len(n.api.told))
		}
		_ = w.account.SetUnmanaged("subnet-a", 0)
		var over status.Status
		for range 600 {
			time.Sleep(time.Second)
			n.retry()
			if st := n.status(); !st.FaultOver.IsZero() {
				over = st
			}
		}
		if over.Health.Reason != health.SubnetExhausted || len(over.Causes) > 0 || !strings.HasPrefix(over.Cause(over.Written), "over for ") {
			t.Errorf("pods have addresses again, and the node is told faulty: %q, status %+v", over.Cause(over.Written), over)
		}
		sleep(2 * time.Minute)
		if r := n.last(); r.Faulty || r.Taint || r.Capacity != 110 || n.retry() > 0 {
			t.Errorf("twelve minutes after there is room: %+v", r)
		}
		if st := n.status(); !st.FaultSince.IsZero() || !st.FaultOver.IsZero() {
			t.Errorf("status %+v", st)
		}
	})
}

func TestANodeWithMorePodsThanItCanHoldIsWellWhenTheyAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 2, V4: 9, V6: 9}, func(n *testNode) {
			inCluster(n)
			n.conf.Resync = time.Hour // so that nothing but the judge asks for a tick
		})
		defer n.stop()
		for range 16 {
			n.crowd(1)
			sleep(10 * time.Second)
			n.retry()
		}
		sleep(5 * time.Minute)
		extra := n.bind("extra")
		sleep(29 * time.Second)
		if r := n.last(); r.Faulty {
			t.Errorf("before the grace is over: %+v", r)
		}
		sleep(2 * time.Second)
		if r := n.last(); r.Reason != health.AddressLimitReached {
			t.Errorf("after the grace: %+v", r)
		}
		n.unbind(extra)
		sleep(59 * time.Second)
		if r := n.last(); !r.Faulty {
			t.Errorf("before the quiet time is over: %+v", r)
		}
		sleep(2 * time.Second)
		if r := n.last(); r.Faulty || n.status().Addresses.Free != 0 {
			t.Errorf("after it: %+v, status %+v", r, n.status())
		}
	})
}

// Jobs on a full node: each waits until the address of the one before has rested, and

// some always do.

func TestPodsThatWaitForWhatRestsAreNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 2, V4: 9, V6: 9}, func(n *testNode) {
			inCluster(n)
			n.conf.Settings.CoolDown = 25 * time.Second
		})
		defer n.stop()
		pods := n.crowd(16)
		waited := 0
		for second := range 600 {
			sleep(time.Second)
			waited += n.retry()
			if second%5 == 0 && second > 30 {
				n.unbind(pods[0])
				n.del(n.keys()[0])
				pods = append(pods[1:], n.crowd(1)...)
			}
		}
		if r := n.last(); waited < 500 || slices.ContainsFunc(n.api.told, func(r health.Report) bool { return r.Faulty }) {
			t.Errorf("%d pod seconds waited, told %+v", waited, r)
		}
	})
}

// quota lets the account have no more ENIs.

func TestAFullNodeAndASlowCloudAreNoFault(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits eni.Limits
		pods   int
		faults []sim.Chance
	}{
		{"as many pods as it can hold", eni.Limits{ENIs: 2, V4: 9, V6: 9}, 16, nil},
		{"an ENI takes long to be made, and the next one again", eni.Limits{ENIs: 3, V4: 17, V6: 17}, 30, []sim.Chance{{Action: sim.ActAttach, Percent: 100, Fault: sim.Fault{Delay: 20 * time.Second}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, tt.limits, inCluster)
				defer n.stop()
				w.account.SetFaults(tt.faults...)
				pods := n.crowd(tt.pods)
				for range 300 {
					time.Sleep(time.Second)
					n.retry()
				}
				// One is replaced by another, whose address is still resting.
				n.unbind(pods[0])
				n.del(n.keys()[0])
				n.crowd(1)
				for range 300 {
					time.Sleep(time.Second)
					n.retry()
				}
				for _, r := range n.api.told {
					if r.Faulty {
						t.Errorf("told %+v", r)
					}
				}
				if n.retry() > 0 || n.last().Capacity != n.status().Most {
					t.Errorf("told %+v, status %+v", n.last(), n.status())
				}
			})
		})
	}
}

// What the previous agent told stands until this one has seen that all is well for

// long enough.

func TestAFaultOutlivesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, inCluster)
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		pods := n.crowd(19)
		for range 400 {
			if sleep(100 * time.Millisecond); n.last().Faulty {
				break
			}
		}
		n.kill() // at once, with nothing written down at the end
		before := n.last()
		if !before.Faulty {
			t.Fatalf("told %+v", before)
		}
		n.api.told = nil
		w.account.Refuse(cloud.ErrUnavailable)
		n.start(-1, false)
		sleep(2 * time.Second)
		if r := n.last(); !r.Faulty || r.Capacity != before.Capacity {
			t.Errorf("a new agent tells %+v, the old one told %+v", r, before)
		}
		w.account.Refuse(nil)
		_ = w.account.SetUnmanaged("subnet-a", 0)
		for _, p := range pods[16:] {
			n.unbind(p)
		}
		n.forget()
		sleep(50 * time.Second)
		n.stop()
		n.start(-1, false)
		sleep(15 * time.Minute)
		if r := n.last(); r.Faulty || r.Capacity != 110 {
			t.Errorf("when all is well again: %+v", r)
		}
		n.stop()
	})
}

func TestTheClusterIsToldNothingBeforeAnythingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) {
			inCluster(n)
			n.w.account.SetFaults(sim.Chance{Percent: 100, Fault: sim.Fault{Delay: 25 * time.Second}})
		})
		defer n.stop()
		if len(n.api.told) > 1 || len(n.api.told) == 1 && !n.api.told[0].Faulty {
			t.Errorf("told %+v", n.api.told)
		}
		if h := n.status().Health; h.Capacity != -1 && h.Capacity != 110 {
			t.Errorf("status %+v", h)
		}
	})
}

// Others need every address of an exhausted subnet: nodes that were refused there keep

// what their pods of now need, and one more.
