package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// What the cloud refuses of one class of calls, or of one object, is left alone, and nothing
// else: a pod that needs an address does not wait for it.
func TestWhatIsRefusedHoldsNoAddressFromAPod(t *testing.T) {
	unavailable := func() error { return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "HTTP 503"} }
	unheardOf := func() error { return &driver.Error{Kind: cloud.ErrForbidden, Detail: "InvalidFoo.Unheard (HTTP 400)"} }
	noGroup := func() error { return &driver.Error{Kind: cloud.ErrForbidden, Detail: "InvalidGroup.NotFound: no sg-0"} }
	for name, tt := range map[string]struct {
		method string
		err    func() error
		what   func(n *testNode) // makes the agent ask for it
	}{
		"describes are forbidden":            {"Interfaces", isForbidden, nil},
		"describes fail":                     {"Interfaces", unavailable, nil},
		"releases are forbidden":             {"Unassign", isForbidden, (*testNode).leave},
		"releases are refused as never seen": {"Unassign", unheardOf, (*testNode).leave},
		"releases fail":                      {"Unassign", unavailable, (*testNode).leave},
		"the security group is gone": {"Create", noGroup, func(n *testNode) {
			n.stop()
			n.conf.Pool.PreAllocateENI = 2 // beforehand, so that pods need none of it
			n.start(-1, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n, d := withMeddler(t, sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 200}}, func(_ *world, n *testNode, _ *meddled) {
					n.conf.Pool.FirstENI, n.conf.Cloud.Describe = 1, 20*time.Second
				})
				defer n.stop()
				asked := 0
				for range 20 { // something to release
					_ = n.add()
				}
				n.all(t, time.Minute)
				d.refuseIf(func(method, _ string) error {
					if method != tt.method {
						return nil
					}
					asked++
					return tt.err()
				})
				if tt.what != nil {
					tt.what(n)
				}
				for range 4 { // the engine asks for addresses without a describe for 8 minutes
					sleep(97 * time.Second)
					for range 16 {
						_ = n.add()
					}
					sleep(2 * time.Second)
					if left := n.retry(); left > 0 {
						t.Errorf("%d pods wait after 2 s, left alone are %q", left, n.status().Backoff)
					}
				}
				if asked == 0 || asked > 200 {
					t.Errorf("asked %d times for what is refused", asked)
				}
			})
		})
	}
}

// leave ends all pods and lets the agent ask the cloud to take their addresses.
func (n *testNode) leave() {
	for _, k := range n.keys() {
		n.del(k)
	}
	sleep(10 * time.Minute) // until the pool shrinks
}

// What stands between the node and the cloud, such as a proxy in maintenance, may ask for more than
// pods can wait.
func TestAWishForAnHourIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n, d := withMeddler(t, sim.NodeSpec{Limits: large}, func(*world, *testNode, *meddled) {})
		defer n.stop()
		d.refuseIf(func(method, _ string) error {
			if method == "Interfaces" {
				return nil
			}
			return &driver.Error{Kind: cloud.ErrUnavailable, Detail: "HTTP 503", RetryAfter: time.Hour}
		})
		for range 20 {
			_ = n.add()
		}
		sleep(time.Minute)
		d.refuseIf(nil)
		n.all(t, 15*time.Minute)
	})
}
