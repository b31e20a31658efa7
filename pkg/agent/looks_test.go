package agent

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// nowAndThen refuses the first request for addresses after each refusal has been over for
// long: an account that is short for a second, now and then.
type nowAndThen struct {
	driver.Driver
	every   time.Duration
	last    time.Time
	refused int
}

func (d *nowAndThen) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	if d.every > 0 && time.Since(d.last) >= d.every {
		d.last = time.Now()
		d.refused++
		return driver.Assigned{}, &driver.Error{Kind: cloud.ErrThrottled, Detail: "RequestLimitExceeded"}
	}
	return d.Driver.Assign(ctx, a)
}

// A node whose requests are refused for their rate once in some minutes, and pass a second
// later, has to look at the cloud all the same: an address that somebody has taken away would be
// handed to pods for hours.
func TestARefusalNowAndThenDoesNotEndLooks(t *testing.T) {
	for name, every := range map[string]time.Duration{"never refused": 0, "refused once in 6 minutes": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.4.0/22"))
				conf := testConfig("n1")
				conf.Pool.Scale.Batch = 4
				n, d := w.addNode(conf, sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 50}, Subnet: "subnet-a"}), &nowAndThen{every: every}
				n.over = func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }
				n.options = func(o engine.Options) engine.Options { return o }
				n.start(-1, false)
				defer n.stop()
				sleep(3 * time.Minute)
				var gone netip.Addr
				looks := w.calls()["Interfaces"]
				for k := range 26 { // the node grows by a batch every six minutes
					for range 4 {
						_ = n.add()
					}
					sleep(6 * time.Minute)
					n.retry()
					if k == 2 {
						gone = n.takeAwayFree(t)
						sleep(3 * time.Minute) // two looks
					}
				}
				looks = w.calls()["Interfaces"] - looks
				n.mu.Lock()
				defer n.mu.Unlock()
				for _, line := range n.cached.Addresses {
					if line.Addr == gone && !line.Lost && line.State != eni.Releasing {
						t.Errorf("%s was taken away 2h18m ago and is still %s in the cache", gone, line.State)
					}
				}
				if looks < 15 {
					t.Errorf("in 2h36m with %d refusals, each over a second later, the node has looked at the cloud %d times", d.refused, looks)
				}
				for _, pod := range n.pods {
					for _, a := range pod.addrs {
						if a == gone {
							t.Errorf("pod %s has %s, which the cloud had taken away before", pod.owner.Pod, a)
						}
					}
				}
			})
		})
	}
}

// takeAwayFree takes the last free address away behind the node's back.
func (n *testNode) takeAwayFree(t *testing.T) (gone netip.Addr) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.cached.Addresses {
		if line.State == eni.Free {
			gone = line.Addr
		}
	}
	n.w.taken[gone] = true
	if err := n.w.account.TakeAway(gone); err != nil {
		t.Fatal(err)
	}
	return gone
}

// One request is refused, and passes a second later: looks come as usual as soon as that counts
// no more.
func TestOneRefusalCostsNoLooksAfterItHasEased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.4.0/22"))
		n, d := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 50}, Subnet: "subnet-a"}), &nowAndThen{}
		n.over = func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }
		n.start(-1, false)
		defer n.stop()
		sleep(3 * time.Minute)
		d.every, d.last = time.Hour, time.Time{}
		for range 20 {
			_ = n.add()
		}
		sleep(10 * time.Second)
		if left := n.retry(); left > 0 || d.refused != 1 {
			t.Fatalf("%d pods wait, %d refusals", left, d.refused)
		}
		sleep(50 * time.Second)
		if n.life.agent.pressed(w.now()) {
			t.Fatal("it has not eased")
		}
		looks := w.calls()["Interfaces"]
		sleep(5 * time.Minute)
		if looks = w.calls()["Interfaces"] - looks; looks < 4 {
			t.Errorf("in five minutes after it has eased there are %d looks, usually one a minute", looks)
		}
	})
}
