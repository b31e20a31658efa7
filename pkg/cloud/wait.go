package cloud

import (
	"context"
	"time"
)

// Wait returns after d, or with the error of ctx as soon as that has ended. It is the Wait of
// clocks that go by real time.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
