package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Retries are how a driver makes a request again that changes nothing and that the cloud
// refused for its rate, after it has asked Again. The zero Retries are none.
type Retries struct {
	Tries       int           // in all
	First, Most time.Duration // the longest pause after the first try, and after any: each is twice as long
	Least       int           // of a hundred parts of a pause that chance does not take away
}

// Pause returns how long to wait after so many tries, and false if there is none any more.
// random returns a duration from 0 to most.
func (r Retries) Pause(tries int, random func(most time.Duration) time.Duration) (time.Duration, bool) {
	if tries >= r.Tries {
		return 0, false
	}
	pause := r.First
	for range min(tries, 32) - 1 {
		pause = min(2*pause, r.Most)
	}
	sure := pause * time.Duration(r.Least) / 100
	return sure + random(pause-sure), true
}

// Repeat makes a request that changes nothing, for drivers without an SDK that does: again where
// the cloud had too many, after the cloud's wish at least. Nodes that were refused together do
// not come back together.
func (r Retries) Repeat(ctx context.Context, request func() error) error {
	for tries := 1; ; tries++ {
		err := request()
		wait, more := r.Pause(tries, func(most time.Duration) time.Duration { return rand.N(most + 1) })
		if !more || !errors.Is(err, cloud.ErrThrottled) {
			return err
		}
		if e, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, e.RetryAfter)
		}
		if end, limited := ctx.Deadline(); limited && time.Until(end) < wait {
			return err // what the cloud said tells more than that time ran out
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return err
		case <-t.C:
		}
		if Again(ctx) != nil {
			return err
		}
	}
}

type againKey struct{}

// WithAgain is for a method's context: who made it counts requests, and is asked before one that
// the method makes again.
func WithAgain(ctx context.Context, ask func(context.Context) error) context.Context {
	return context.WithValue(ctx, againKey{}, ask)
}

// Again is for drivers that make a request again: an error is why it is not to be made.
func Again(ctx context.Context) error {
	if ask, counted := ctx.Value(againKey{}).(func(context.Context) error); counted {
		return ask(ctx)
	}
	return nil
}
