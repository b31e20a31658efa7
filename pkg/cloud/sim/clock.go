package sim

import (
	"context"
	"time"
)

// Clock is what time it is for an account. A simulation brings its own.
type Clock interface {
	Now() time.Time
	// Wait returns after d, which is more than 0, or with an error as soon as ctx
	// has ended.
	Wait(ctx context.Context, d time.Duration) error
}

// Wall is the machine's Clock.
type Wall struct{}

// Now is the machine's time.
func (Wall) Now() time.Time { return time.Now() }

// Wait waits as a Clock does.
func (Wall) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
