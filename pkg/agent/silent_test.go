package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// silent is a cloud that puts fewer addresses than it is asked for and calls that a success, and from
// a time on none.
type silent struct {
	driver.Driver
	from *time.Duration
	now  func() time.Duration
}

func (d silent) Traits() driver.Traits {
	t := d.Driver.Traits()
	t.AllOrNothing = false
	return t
}

func (d silent) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	if *d.from > 0 && d.now() >= *d.from {
		return driver.Assigned{}, nil
	}
	return d.Driver.Assign(ctx, a)
}

// The cloud shows addresses in the subnet, gives none of them and says nothing. It is asked ever more
// rarely, and why pods wait is told.
func TestACloudThatGivesNothingWithoutAWordIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var from time.Duration
		w, n := one(t, eni.Limits{ENIs: 1, V4: 50}, func(n *testNode) {
			n.over = func(d driver.Driver) driver.Driver { return silent{d, &from, n.w.now} }
			n.conf.Cloud.Describe = 5 * time.Minute
		})
		defer n.stop()
		from = w.now()
		for range 30 {
			_ = n.add()
		}
		before := w.calls()["AssignAddresses"]
		sleep(time.Hour)
		if calls := w.calls()["AssignAddresses"] - before; calls > 40 {
			t.Errorf("%d calls within an hour", calls)
		}
		if c := n.status().Causes; len(c) == 0 || c[0].Kind != "subnet-full" {
			t.Errorf("the causes are %+v, want subnet-full", c)
		}
		from = 0
		n.all(t, 10*time.Minute)
	})
}
