package simulate

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Where calls are counted and not requests, these are their two kinds.
const (
	anyChange   = "changes"
	anyDescribe = "looks"
)

// till is where the calls of all nodes take their time, and where each of their requests passes
// or is refused by the account's rates.
type till struct {
	w          World
	clock      sim.Clock
	describing map[string]bool // actions that change nothing

	mu       sync.Mutex // never held while a call waits
	rng      *rand.Rand
	meters   map[string]*sim.Meter // by action
	requests map[string]Passed
	passed   func(action string) // nil, or told of each request that passes
	opens    time.Time           // before that everything passes
}

// Passed counts requests of a kind.
type Passed struct{ Passed, Refused int }

func newTill(w World, c sim.Clock) *till {
	return &till{w: w, clock: c, describing: w.describing(), rng: rand.New(rand.NewPCG(w.Seed, 0)), meters: map[string]*sim.Meter{}, requests: map[string]Passed{}}
}

// describing returns the actions that change nothing.
func (w World) describing() map[string]bool {
	if w.Driver != nil {
		return w.Driver.Describing()
	}
	return map[string]bool{anyDescribe: true}
}

// isDescribe tells whether a method changes nothing.
func isDescribe(method string) bool { return slices.Contains(describeMethods[:], method) }

// makeCall lets a call of a method take its time, half of it before and half of it after what it
// does. What attaches or detaches an ENI takes the second half in the cloud: see attacher.
func (t *till) makeCall(ctx context.Context, method string, do func(context.Context) error) error {
	pause, refused := t.startCall(method)
	before := pause
	if !isDescribe(method) {
		before = pause / 2
	}
	after := pause - before
	// A call that is broken off before do had no effect; one that is broken off later may have had
	// one.
	if err := t.waitFor(ctx, before); err != nil {
		return &cloud.Error{Op: method, Kind: cloud.ErrUnavailable, Detail: err.Error()}
	}
	switch {
	case refused != nil:
		refused.Op = method
		return refused
	case method == create, method == remove && t.w.Driver != nil:
		return do(context.WithValue(ctx, stateTime{}, after))
	}
	err := do(ctx)
	if gone := t.waitFor(ctx, after); gone != nil {
		return &cloud.Error{Op: method, Kind: cloud.ErrUnknown, Detail: gone.Error()}
	}
	return err
}

// stateTime is the key of a context: how long attaching or detaching the call's ENI takes.
type stateTime struct{}

func onItsWay(ctx context.Context) time.Duration {
	d, _ := ctx.Value(stateTime{}).(time.Duration)
	return d
}

// startCall decides how long a call takes and, where calls are counted and not requests, whether
// it is refused.
func (t *till) startCall(method string) (pause time.Duration, refused *cloud.Error) {
	l, own := t.w.Latency[method]
	if !own {
		l = t.w.Latency[""]
	}
	pause = l.Base + t.randomUpTo(l.Jitter)
	if t.w.Driver != nil {
		return pause, nil
	}
	kind := anyChange
	if isDescribe(method) {
		kind = anyDescribe
	}
	if again := t.takeRequest(kind); again > 0 {
		return pause, &cloud.Error{Kind: cloud.ErrThrottled, Detail: "request rate of the account exceeded", RetryAfter: again}
	}
	return pause, nil
}

// admit lets a request pass, as engine.Options.Admit. One that describes and is refused is
// repeated as the cloud's driver does it; real clouds do not tell when to come again.
func (t *till) admit(ctx context.Context, action string) error {
	for tries := 1; ; tries++ {
		if t.takeRequest(action) == 0 {
			return nil
		}
		refused := &driver.Error{Kind: cloud.ErrThrottled, Detail: "request rate of " + action + " exceeded"}
		if !t.describing[action] {
			return refused
		}
		again, more := t.w.Driver.Retries.Pause(tries, t.randomUpTo)
		if !more {
			return refused
		}
		if err := t.waitFor(ctx, again); err != nil {
			return &driver.Error{Kind: cloud.ErrUnavailable, Detail: err.Error() + " before " + action + " passed"}
		}
	}
}

// takeRequest takes a request from its bucket, or returns how long to wait for the next.
func (t *till) takeRequest(action string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.meters[action] == nil {
		t.meters[action] = &sim.Meter{Bucket: t.w.bucketFor(action, t.describing[action])}
	}
	n := t.requests[action]
	var again time.Duration
	if now := t.clock.Now(); !now.Before(t.opens) {
		again = t.meters[action].Take(now)
	}
	if again == 0 {
		n.Passed++
	} else {
		n.Refused++
	}
	t.requests[action] = n
	if again == 0 && t.passed != nil {
		t.passed(action)
	}
	return again
}

// requestCounts returns how many requests there were, by their names.
func (t *till) requestCounts() map[string]Passed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.requests)
}

func (t *till) waitFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return t.clock.Wait(ctx, d)
}

// randomUpTo returns a duration from 0 to most.
func (t *till) randomUpTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.rng.Int64N(int64(most) + 1))
}
