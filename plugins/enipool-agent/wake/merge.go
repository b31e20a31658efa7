package wake

import "context"

// Merge wakes for either of two reasons until ctx ends. Wakes that come together are
// one.
func Merge(ctx context.Context, one, other <-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-one:
			case <-other:
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}
