package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Retries say how a driver repeats a request that changes nothing and that the cloud refused for
// its rate, after it has asked Again. With the zero Retries it repeats none.
type Retries struct {
	Tries       int           // with the first one
	First, Most time.Duration // the longest pause after the first try, which doubles with each try up to Most
	Least       int           // percent of the longest pause that each pause has at least; the rest is random
}

// Pause returns how long to wait after this many tries, and false if there are no more.
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

// Repeat makes a request that changes nothing, and repeats it if the cloud refuses it for the rate.
// It is for drivers without an SDK that does so. It waits at least as long as the cloud asks for.
// The pauses are random, so that nodes that were refused together do not come back together.
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
			return err // the cloud's own words tell more than that the time was over
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

// WithAgain returns a context for a method of a Driver: ask is called before the method repeats a
// request. It is for callers that count requests.
func WithAgain(ctx context.Context, ask func(context.Context) error) context.Context {
	return context.WithValue(ctx, againKey{}, ask)
}

// Again is what a driver has to call before it repeats a request. An error is why it must not.
func Again(ctx context.Context) error {
	if ask, counted := ctx.Value(againKey{}).(func(context.Context) error); counted {
		return ask(ctx)
	}
	return nil
}
