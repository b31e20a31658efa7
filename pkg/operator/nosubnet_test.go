package operator_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/operator"
)

// hidden is a cloud that shows no subnet of those tags while that is set.
type hidden struct {
	driver.Driver
	is *atomic.Bool
}

func (d hidden) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	if d.is.Load() {
		return nil, ctx.Err()
	}
	return d.Driver.Subnets(ctx, f)
}

// Wrong tags or names of subnets in operator.yaml hold up no pod until a node needs an ENI. The log says so at once, and once each time.
func TestALogTellsThatNoSubnetIsThere(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		var none atomic.Bool
		none.Store(true)
		w.wrap = func(d driver.Driver) driver.Driver { return hidden{d, &none} }
		var said bytes.Buffer
		w.leadWith(ctx, func(o *operator.Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
		w.begin(ctx)
		told := func(want int) {
			t.Helper()
			time.Sleep(time.Hour)
			if got := strings.Count(said.String(), "cloud.subnetTags of operator.yaml"); got != want {
				t.Errorf("told %d times, want %d:\n%s", got, want, &said)
			}
		}
		told(1)
		none.Store(false)
		told(1)
		none.Store(true)
		told(2)
	})
}
