package sim

import (
	"context"
	"time"
)

// Call is a call as the account sees it.
type Call struct {
	Action  string // the cloud's name of it, for FailNext, Buckets, Latency and Calls
	Bucket  string // one more bucket that it counts in, "" is none
	Mutates bool
	Token   string // of idempotency, "" is none
	Params  string // what must be the same where the Token is, in any form that compares
	Free    bool   // it counts in no bucket
}

// Tx is the account during a call. It is valid until the function it was given to
// returns.
type Tx struct {
	a     *Account
	fault Fault
	at    time.Time // which state reads show
	past  bool      // that state may be an old one
}

// Now is the time of the call.
func (tx *Tx) Now() time.Time { return tx.a.now }

// told is what was answered to a token.
type told struct {
	params string
	value  any
}

// Do carries out a call that came over a wire: it counts it, throttles it, applies
// faults and tokens, lets its latency pass, half of it before the effect and half
// after it, and runs the effect, which makes all changes at one
// moment and must not be used for anything else: it may be run after Do returned,
// or not at all.
//
// The answer says how what Do returned is to be sent, by Answer.Send.
func Do[T any](ctx context.Context, a *Account, c Call, effect func(*Tx) (T, error)) (T, Answer, error) {
	var none T
	fault, pause, refused := a.admit(c)
	answer := Answer{Break: fault.Answer, Rewrite: fault.Rewrite}
	if err := a.wait(ctx, pause/2+fault.Delay); err != nil {
		return none, Answer{Break: Lost}, err
	}
	value, err := none, refused
	if refused == nil {
		value, answer, err = perform(a, c, fault, effect)
	}
	if gone := a.wait(ctx, pause-pause/2); gone != nil {
		return none, Answer{Break: Lost}, gone
	}
	return value, answer, err
}

// perform has the effect of a call that was not refused, now or later.
func perform[T any](a *Account, c Call, fault Fault, effect func(*Tx) (T, error)) (T, Answer, error) {
	var none T
	answer := Answer{Break: fault.Answer, Rewrite: fault.Rewrite}
	a.lock()
	defer a.mu.Unlock()
	if fault.Later > 0 && c.Mutates {
		a.later(fault.Later, happening{}, func() { _, _ = run(a, c, fault, effect) }) // nobody is there to hear of its error
		if fault.Err == nil {
			return none, Answer{Break: Lost}, nil
		}
		return none, answer, fault.Err
	}
	value, err := run(a, c, fault, effect)
	if fault.Err != nil {
		return none, answer, fault.Err
	}
	return value, answer, err
}

// run has the effect of a call, unless its token has had it.
func run[T any](a *Account, c Call, fault Fault, effect func(*Tx) (T, error)) (T, error) {
	key := c.Action + " " + c.Token
	if before, ok := a.tokens[key]; ok && c.Token != "" {
		value, same := before.value.(T)
		if !same || before.params != c.Params {
			return value, fail(TokenMismatch, c.Token, "")
		}
		return value, nil
	}
	tx := &Tx{a: a, fault: fault, at: a.now}
	if !c.Mutates {
		tx = a.lagging(fault)
	}
	value, err := effect(tx)
	if err == nil && c.Token != "" {
		a.tokens[key] = told{c.Params, value}
	}
	return value, err
}

// lagging is the account as a describing call sees it.
func (a *Account) lagging(fault Fault) *Tx {
	if a.o.Lag <= 0 {
		return &Tx{a: a, fault: fault, at: a.now}
	}
	return &Tx{a: a, fault: fault, at: a.now.Add(-a.upTo(a.o.Lag)), past: true}
}

// admit counts the call and decides what becomes of it: what goes wrong, how long
// it takes, and whether it is refused.
func (a *Account) admit(c Call) (f Fault, pause time.Duration, refused error) {
	a.lock()
	defer a.mu.Unlock()
	a.calls[c.Action]++
	pause = a.latency(c.Action)
	if a.faults.refuse != nil {
		return Fault{}, pause, a.faults.refuse
	}
	if again := a.throttle(c, a.o, a.now); again > 0 {
		return Fault{}, pause, &Error{Reason: Throttled, Object: c.Action, RetryAfter: again}
	}
	f = a.faults.pick(c.Action, a.rng)
	if f.Err != nil && !f.After && f.Later == 0 {
		return f, pause, f.Err
	}
	return f, pause, nil
}

// traffic is how many calls there were, and which may come.
type traffic struct {
	meters map[string]*Meter
	calls  map[string]int // by action
}

// throttle takes from the call's buckets, or returns how long to wait until they
// have something again.
func (t *traffic) throttle(c Call, o Options, now time.Time) time.Duration {
	if c.Free {
		return 0
	}
	own, most := "describing", o.Describing
	if c.Mutates {
		own, most = "mutating", o.Mutating
	}
	if b, ok := o.Buckets[c.Action]; ok {
		own, most = c.Action, b
	}
	if again := t.meter(own, most).Take(now); again > 0 || c.Bucket == "" {
		return again
	}
	return t.meter(c.Bucket, o.Buckets[c.Bucket]).Take(now)
}

// meter returns the bucket in use of that name.
func (t *traffic) meter(name string, b Bucket) *Meter {
	if t.meters[name] == nil {
		t.meters[name] = &Meter{Bucket: b}
	}
	return t.meters[name]
}

func (a *Account) latency(action string) time.Duration {
	l, ok := a.o.Latency[action]
	if !ok {
		l = a.o.Latency[""]
	}
	return l.Base + a.upTo(l.Jitter)
}

// wait lets d pass, a part of a call.
func (a *Account) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	return a.o.Clock.Wait(ctx, d)
}

// upTo returns a random duration from 0 to d.
func (a *Account) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(a.rng.Int64N(int64(d) + 1))
}
