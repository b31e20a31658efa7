package operator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// crowd is a cloud that takes long to show many instances.
type crowd struct {
	driver.Driver
	many atomic.Bool
}

func (c *crowd) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	if of := max(len(s.Attached), len(s.Made)); c.many.Load() && of != 1 {
		time.Sleep(4 * time.Second)
	}
	return c.Driver.Page(ctx, s)
}

// A new leader asks first about the nodes whose pods wait: they do not wait until all others are described.
func TestANewLeaderServesWhoWaitsBeforeAllAreDescribed(t *testing.T) {
	play(t, setup{nodes: 4, perScan: 200}, func(ctx context.Context, w *world) {
		c := &crowd{}
		w.wrap = func(d driver.Driver) driver.Driver { c.Driver = d; return c }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(5)
		}
		w.until(5*time.Minute, w.isQuiet)
		w.lead.kill()
		c.many.Store(true)
		time.Sleep(lease.Duration)
		a := w.agents[0]
		a.set(30)
		w.leadWith(ctx, nil)
		if took := w.until(time.Minute, func() bool { return len(a.used()) == 30 }); took > lease.Settle+3*time.Second {
			t.Errorf("the pods have waited %s for the next leader", took)
		}
	})
}
