package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// mute is a driver whose cloud refuses to tell of instances.
type mute struct {
	driver.Driver
	asked *int
}

func (d mute) Alive(context.Context, []string) (map[string]cloud.State, error) {
	*d.asked++
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: "no policy allows it"}
}

// The cloud refuses to tell whether instances are alive. An object that waits for that is asked for ever less often, as all that is refused is.
func TestARefusalToTellOfInstancesIsAskedForEverLess(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		asked := 0
		w.wrap = func(d driver.Driver) driver.Driver { return mute{d, &asked} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(4)
		w.until(3*time.Minute, w.isQuiet)
		a.end()
		time.Sleep(time.Second)
		w.store.remove(a.name)
		time.Sleep(3 * time.Hour)
		if asked > 60 {
			t.Errorf("%d requests in three hours, all refused", asked)
		}
	})
}
