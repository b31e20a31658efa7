package agent

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

func isUnavailable() error { return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "HTTP 503"} }

// A describe of a quiet node that fails is made again as soon as that of a busy one: until then
// the node is told to hold no more than it has.
func TestAFailedDescribeIsNotLeftForAsLongAsAQuietNodeLeavesThem(t *testing.T) {
	for name, err := range map[string]func() error{"unavailable": isUnavailable,
		"throttled": func() error { return &driver.Error{Kind: cloud.ErrThrottled, Detail: "RequestLimitExceeded"} }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n, d := withMeddler(t, sim.NodeSpec{Limits: large}, func(_ *world, n *testNode, _ *meddled) {
					inCluster(n)
					n.conf.Cloud.Describe = 5 * time.Minute
				})
				defer n.stop()
				n.crowd(8)
				sleep(3 * time.Hour)
				var failed atomic.Bool
				d.refuseIf(func(method, _ string) error {
					if method != "Interfaces" || !failed.CompareAndSwap(false, true) {
						return nil
					}
					return err()
				})
				for range 40 {
					if sleep(time.Minute); failed.Load() {
						break
					}
				}
				if !failed.Load() {
					t.Fatal("no describe for 40 minutes")
				}
				sleep(10 * time.Minute)
				if r, s := n.last(), n.status(); r.Capacity != 110 || s.Problem != "" {
					t.Errorf("ten minutes after one failed describe: report %+v, problem %q", r, s.Problem)
				}
			})
		})
	}
}

// The cloud was away when the node wanted something of it, and it wants nothing any more: nobody knows
// whether the cloud is away still.
func TestAnOutageIsNotToldForEverWhereNothingIsTried(t *testing.T) {
	for name, tt := range map[string]struct {
		methods []string
		during  func(t *testing.T, n *testNode)
	}{
		"of requests for addresses": {[]string{"Assign", "Create"}, func(_ *testing.T, n *testNode) {
			sleep(20 * time.Minute)
			pods := n.crowd(30)
			sleep(5 * time.Minute)
			n.end(pods)
			sleep(time.Hour)
		}},
		"of releases": {[]string{"Unassign"}, func(t *testing.T, n *testNode) {
			pods := n.crowd(40)
			n.all(t, 5*time.Minute)
			n.end(pods)
			sleep(20 * time.Minute) // until the pool shrinks
			n.crowd(40)
			n.all(t, 5*time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n, d := withMeddler(t, sim.NodeSpec{Limits: large}, func(_ *world, n *testNode, _ *meddled) { inCluster(n) })
				defer n.stop()
				var asked atomic.Int32
				d.refuseIf(func(method, _ string) error {
					if !slices.Contains(tt.methods, method) {
						return nil
					}
					asked.Add(1)
					return isUnavailable()
				})
				tt.during(t, n)
				d.refuseIf(nil)
				sleep(2 * time.Hour)
				if r, s := n.last(), n.status(); asked.Load() == 0 || r.Capacity != 110 || s.Problem != "" {
					t.Errorf("asked %d times; report %+v, problem %q, target %d, addresses %+v", asked.Load(), r, s.Problem, s.Target, s.Addresses)
				}
			})
		})
	}
}

// end ends the pods, those that wait too.
func (n *testNode) end(pods []eni.Pod) {
	for _, p := range pods {
		n.unbind(p)
	}
	for _, k := range n.keys() {
		n.del(k)
	}
	n.mu.Lock()
	clear(n.waiting)
	n.mu.Unlock()
	n.wake()
}
