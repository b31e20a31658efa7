package simulate

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// till is where the calls of all nodes take their time and pay for their requests.
type till struct {
	w     World
	clock sim.Clock

	mu       sync.Mutex // never held while a call waits
	rng      *rand.Rand
	meters   map[string]*sim.Meter // by request
	requests map[string]Passed
	paid     map[paid]bool
	changes  sim.Meter // of calls, where there are no prices
	looks    sim.Meter
}

// paid is a change that CreateInterface made for a token: later calls with it find
// that it is done.
type paid struct{ token, request string }

func newTill(w World, c sim.Clock) *till {
	return &till{w: w, clock: c, rng: rand.New(rand.NewPCG(w.Seed, 0)), meters: map[string]*sim.Meter{}, requests: map[string]Passed{},
		paid: map[paid]bool{}, changes: sim.Meter{Bucket: w.Mutating}, looks: sim.Meter{Bucket: w.Describing}}
}

// fare is a call that pays.
type fare struct {
	method string
	count  int    // addresses that it is about
	token  string // of the intent of an ENI
}

func (f fare) looks() bool {
	return f.method == looks[0] || f.method == looks[1] || f.method == looks[2]
}

// call lets a call take its time, half of it before and half of it after what it does.
// Where one of its requests is refused nothing has happened.
func (t *till) call(ctx context.Context, f fare, do func(context.Context) error) error {
	pause, refused := t.begin(f)
	if refused == nil {
		if err := t.payAll(ctx, f, t.prices(f, false)); err != nil {
			return named(err, f)
		}
	}
	before := pause
	if !f.looks() {
		before = pause / 2
	}
	if err := t.pass(ctx, before); err != nil {
		return named(&cloud.Error{Kind: cloud.ErrUnavailable, Detail: err.Error()}, f)
	}
	switch {
	case refused != nil:
		return named(refused, f)
	case f.method == create:
		return do(context.WithValue(ctx, joining{}, &joining{f, pause - before}))
	}
	err := do(ctx)
	if gone := t.pass(ctx, pause-before); gone != nil {
		return named(&cloud.Error{Kind: cloud.ErrUnknown, Detail: gone.Error()}, f)
	}
	return err
}

func named(e *cloud.Error, f fare) error {
	e.Op = f.method
	return e
}

// begin decides how long a call takes and, where calls are counted and not requests,
// whether it is refused.
func (t *till) begin(f fare) (pause time.Duration, refused *cloud.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, own := t.w.Latency[f.method]
	if !own {
		l = t.w.Latency[""]
	}
	pause = l.Base + t.upTo(l.Jitter)
	if t.w.Prices != nil {
		return pause, nil
	}
	m := &t.changes
	if f.looks() {
		m = &t.looks
	}
	if again := m.Take(t.clock.Now()); again > 0 {
		return pause, &cloud.Error{Kind: cloud.ErrThrottled, Detail: "request rate of the account exceeded", RetryAfter: again}
	}
	return pause, nil
}

// joining is in the context of a CreateInterface: what is to be paid, and to pass, before
// its ENI is attached.
type joining struct {
	fare
	takes time.Duration
}

// attaching lets the time pass that an ENI takes to be attached, with the requests that
// are made in it.
func (t *till) attaching(ctx context.Context) error {
	j, _ := ctx.Value(joining{}).(*joining)
	if j == nil {
		return nil
	}
	later := t.prices(j.fare, true)
	part := j.takes / time.Duration(len(later)+1)
	for _, p := range later {
		if err := t.pass(ctx, part); err != nil {
			return err
		}
		if err := t.payAll(ctx, j.fare, []Price{p}); err != nil {
			return err
		}
	}
	return t.pass(ctx, j.takes-part*time.Duration(len(later)))
}

// prices returns the requests of a call, in their order.
func (t *till) prices(f fare, later bool) []Price {
	var list []Price
	for _, p := range t.w.Prices[f.method] {
		if p.Later != later {
			continue
		}
		for range p.Of(f.count) {
			list = append(list, p)
		}
	}
	return list
}

// longestRetry is the longest that clients of clouds wait before they ask again.
const longestRetry = 20 * time.Second

// payAll makes requests, and makes those again that are refused as clients do: after a
// random time of up to a second, then two, and so on. EC2 and its like do not tell when to
// come again.
func (t *till) payAll(ctx context.Context, f fare, list []Price) *cloud.Error {
	for _, p := range list {
		for try, most := 1, time.Second; ; try, most = try+1, min(2*most, longestRetry) {
			again, passed := t.pay(f, p, most)
			if passed {
				break
			}
			if try >= p.Tries {
				return &cloud.Error{Kind: cloud.ErrThrottled, Detail: "request rate of " + p.Request + " exceeded"}
			}
			if err := t.pass(ctx, again); err != nil {
				return &cloud.Error{Kind: cloud.ErrUnavailable, Detail: err.Error() + " before " + p.Request + " passed"}
			}
		}
	}
	return nil
}

// pay takes a request from its bucket, or tells when to try again.
func (t *till) pay(f fare, p Price, most time.Duration) (again time.Duration, passed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	once := paid{f.token, p.Request}
	if t.paid[once] {
		return 0, true
	}
	if t.meters[p.Request] == nil {
		t.meters[p.Request] = &sim.Meter{Bucket: t.w.bucket(p)}
	}
	n := t.requests[p.Request]
	if passed = t.meters[p.Request].Take(t.clock.Now()) == 0; passed {
		n.Passed++
		if f.method == create && !p.Looks {
			t.paid[once] = true
		}
	} else {
		n.Refused++
		again = t.upTo(most)
	}
	t.requests[p.Request] = n
	return again, passed
}

// counts returns how many requests there were, by their names.
func (t *till) counts() map[string]Passed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.requests)
}

func (t *till) pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return t.clock.Wait(ctx, d)
}

// upTo returns a random duration from 0 to d.
func (t *till) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(t.rng.Int64N(int64(d) + 1))
}
