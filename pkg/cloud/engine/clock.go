package engine

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Clock tells an engine, or a simulated account, what time it is. A simulation brings its own.
type Clock interface {
	Now() time.Time
	// Wait returns after d, which is more than 0, or with an error as soon as ctx
	// has ended.
	Wait(ctx context.Context, d time.Duration) error
}

// Wall is the machine's Clock.
type Wall struct{}

// Now returns the machine's time.
func (Wall) Now() time.Time { return time.Now() }

// Wait implements Clock.
func (Wall) Wait(ctx context.Context, d time.Duration) error { return cloud.Wait(ctx, d) }
