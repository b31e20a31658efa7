package cloudtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Clock is the machine's clock, which a test can set ahead. It is for an engine over an endpoint in
// real time.
type Clock struct{ ahead atomic.Int64 }

// Now implements engine.Clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Wait implements engine.Clock.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error { return cloud.Wait(ctx, d) }

// Set sets how far the clock is ahead of the machine's.
func (c *Clock) Set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }
