package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// refuses makes the account refuse the action from now on, but for the next calls, which have the faults.
func (w *world) refuses(action string, first ...sim.Fault) {
	w.account.FailNext(action, first...)
	w.account.SetFaults(sim.Chance{Action: action, Percent: 100, Fault: sim.Fault{Err: cloud.ErrForbidden}})
}

// The node may give nothing back, and pods come that need all it has. What the cloud did not take of what
// it may have been asked to is theirs, once describes have had the time to show that.
func TestWhatTheCloudRefusesToTakeBackPodsGet(t *testing.T) {
	unheard := sim.Fault{Err: cloud.ErrUnknown}
	for name, tt := range map[string]struct {
		limits  eni.Limits
		action  string
		faults  []sim.Fault
		restart bool
		pods    int
	}{
		"releases are refused":                              {limits: eni.Limits{ENIs: 1, V4: 33}, action: sim.ActUnassign, pods: 30},
		"releases are refused and the agent is restarted":   {limits: eni.Limits{ENIs: 1, V4: 33}, action: sim.ActUnassign, restart: true, pods: 30},
		"a release came to nothing and the next is refused": {limits: eni.Limits{ENIs: 1, V4: 33}, action: sim.ActUnassign, faults: []sim.Fault{unheard}, pods: 30},
		"an ENI's deletion came to nothing and the next is refused": {limits: eni.Limits{ENIs: 2, V4: 17}, action: sim.ActDetach,
			faults: []sim.Fault{unheard}, pods: 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, tt.limits, nil)
				for range 30 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				w.refuses(tt.action, tt.faults...)
				for _, k := range n.keys() {
					n.del(k)
				}
				sleep(30 * time.Minute)
				if tt.restart {
					n.stop()
					n.start(-1, false)
					sleep(10 * time.Minute)
				}
				for range tt.pods {
					_ = n.add()
				}
				n.all(t, 10*time.Minute)
				if err := w.check(); err != nil {
					t.Error(err)
				}
				n.stop()
				if left := n.life.agent.doubts.given; len(left) > 0 {
					t.Errorf("still in doubt: %v", left)
				}
			})
		})
	}
}

// A release is done four minutes after its answer was lost, and all others are refused. No pod has one of
// those addresses meanwhile.
func TestAReleaseThatComesLateTakesNoPodsAddress(t *testing.T) {
	for name, restart := range map[string]bool{"by the same agent": false, "by a restarted one": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := 4 * time.Minute
				if restart {
					late = 10 * time.Second
				}
				w, n := one(t, eni.Limits{ENIs: 1, V4: 33}, nil)
				for range 30 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				w.refuses(sim.ActUnassign, sim.Fault{Answer: sim.Lost, Later: late})
				for _, k := range n.keys() {
					n.del(k)
				}
				before := w.account.Calls()[sim.ActUnassign]
				for range 36000 {
					if w.account.Calls()[sim.ActUnassign] > before {
						break
					}
					sleep(100 * time.Millisecond)
				}
				if restart {
					n.kill()
					n.start(-1, false)
				}
				for range 30 {
					_ = n.add()
				}
				for range 900 {
					sleep(time.Second)
					n.retry()
					if err := w.check(); err != nil {
						t.Fatal(err)
					}
				}
				n.stop()
			})
		})
	}
}
