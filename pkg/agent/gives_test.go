package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// noReleases refuses releases for their rate, and nothing else.
type noReleases struct {
	driver.Driver
	refuse  bool
	refused int
}

func (d *noReleases) Unassign(ctx context.Context, u driver.Unassign) error {
	if d.refuse {
		d.refused++
		return &driver.Error{Kind: cloud.ErrThrottled, Detail: "RequestLimitExceeded"}
	}
	return d.Driver.Unassign(ctx, u)
}

// Accounts have buckets of their own for releases, and others may have used up that one. Requests for
// addresses pass all the while: pods find free ones on the node as ever.
func TestRefusedReleasesDoNotEndThePoolsReserve(t *testing.T) {
	for name, refuse := range map[string]bool{"all pass": false, "releases are refused": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.4.0/22"))
				n, d := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 50}, Subnet: "subnet-a"}), &noReleases{refuse: refuse}
				n.over = func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }
				n.start(-1, false)
				defer n.stop()
				for range 90 {
					_ = n.add()
				}
				n.all(t, 5*time.Minute)
				for _, key := range n.keys() {
					n.del(key)
				}
				sleep(10 * time.Minute)
				waited, looks := 0, w.calls()["Interfaces"]
				for range 100 { // one pod each 20 seconds
					if n.add() != nil {
						waited++
					}
					sleep(20 * time.Second)
					n.retry()
				}
				looks = w.calls()["Interfaces"] - looks
				t.Logf("%d releases refused; %d of 100 pods had to wait; %d looks in 33 minutes", d.refused, waited, looks)
				if waited > 0 || looks < 10 {
					t.Errorf("%d of 100 pods that come slowly found no free address on the node, which has looked at the cloud %d times in 33 minutes", waited, looks)
				}
			})
		})
	}
}
