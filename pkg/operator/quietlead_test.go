package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// latePages is a cloud whose describes take their time.
type latePages struct{ driver.Driver }

func (d latePages) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	time.Sleep(time.Second)
	return d.Driver.Page(ctx, s)
}

// Who leads next has nothing to say of nodes that have what they ask for: with thousands of them their writes would come before that of a node
// whose pods wait.
func TestANewLeaderWritesNothingOfNodesThatHaveAll(t *testing.T) {
	play(t, setup{nodes: 3}, func(ctx context.Context, w *world) {
		w.wrap = func(d driver.Driver) driver.Driver { return latePages{d} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(5)
		}
		w.until(5*time.Minute, w.isQuiet)
		time.Sleep(time.Minute) // what was held back is written
		var before []int
		for _, a := range w.agents {
			before = append(before, w.store.writesOf(a.name))
		}
		w.lead.kill()
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		time.Sleep(5 * time.Minute)
		for i, a := range w.agents {
			if now := w.store.writesOf(a.name); now != before[i] {
				t.Errorf("%s was written %d times: %+v", a.name, now-before[i], w.store.node(a.name).Status.Conditions)
			}
		}
	})
}
