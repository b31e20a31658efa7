package sim

import (
	"context"
	"time"
)

// Call is a request as the account sees it.
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

// tokenAnswer is what was answered to a token.
type tokenAnswer struct {
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
func Do[T any](ctx context.Context, account *Account, c Call, effect func(*Tx) (T, error)) (T, Answer, error) {
	var none T
	fault, pause, refused := account.admitCall(c)
	answer := Answer{Break: fault.Answer, Rewrite: fault.Rewrite}
	if err := account.wait(ctx, pause/2+fault.Delay); err != nil {
		return none, Answer{Break: Lost}, err
	}
	value, err := none, refused
	if refused == nil {
		value, answer, err = performCall(account, c, fault, effect)
	}
	if gone := account.wait(ctx, pause-pause/2); gone != nil {
		return none, Answer{Break: Lost}, gone
	}
	return value, answer, err
}

// performCall runs the effect of a call that was not refused, now or, with the fault Later, later.
func performCall[T any](account *Account, call Call, fault Fault, effect func(*Tx) (T, error)) (T, Answer, error) {
	var none T
	answer := Answer{Break: fault.Answer, Rewrite: fault.Rewrite}
	account.lock()
	defer account.mu.Unlock()
	if fault.Later > 0 && call.Mutates {
		account.scheduleIn(fault.Later, happening{}, func() { _, _ = runEffect(account, call, fault, effect) }) // nobody is there to hear of its error
		if fault.Err == nil {
			return none, Answer{Break: Lost}, nil
		}
		return none, answer, fault.Err
	}
	value, err := runEffect(account, call, fault, effect)
	if fault.Err != nil {
		return none, answer, fault.Err
	}
	return value, answer, err
}

// runEffect runs the effect of a call, unless an earlier call with its token has done so: then that
// one's answer is returned.
func runEffect[T any](account *Account, call Call, fault Fault, effect func(*Tx) (T, error)) (T, error) {
	key := call.Action + " " + call.Token
	if before, ok := account.tokens[key]; ok && call.Token != "" {
		value, same := before.value.(T)
		if !same || before.params != call.Params {
			return value, fail(TokenMismatch, call.Token, "")
		}
		return value, nil
	}
	// A change always sees the newest state: a cloud's answers lag, its decisions do not.
	tx := &Tx{a: account, fault: fault, at: account.now}
	if !call.Mutates {
		tx = account.laggingTx(fault)
	}
	value, err := effect(tx)
	if err == nil && call.Token != "" {
		account.tokens[key] = tokenAnswer{call.Params, value}
	}
	return value, err
}

// laggingTx is the account as a describing call sees it: as old as the Lag at most, by chance.
func (a *Account) laggingTx(fault Fault) *Tx {
	if a.o.Lag <= 0 {
		return &Tx{a: a, fault: fault, at: a.now}
	}
	return &Tx{a: a, fault: fault, at: a.now.Add(-a.upTo(a.o.Lag)), past: true}
}

// admitCall counts the call and decides what becomes of it: which fault it has, how long it takes,
// and whether it is refused.
func (a *Account) admitCall(call Call) (fault Fault, pause time.Duration, refused error) {
	a.lock()
	defer a.mu.Unlock()
	a.calls[call.Action]++
	pause = a.latencyOf(call.Action)
	if a.faults.refuse != nil {
		return Fault{}, pause, a.faults.refuse
	}
	if again := a.takeTokens(call, a.o, a.now); again > 0 {
		return Fault{}, pause, &Error{Reason: Throttled, Object: call.Action, RetryAfter: again}
	}
	fault = a.faults.pickFault(call.Action, a.rng)
	if fault.Err != nil && !fault.After && fault.Later == 0 {
		return fault, pause, fault.Err
	}
	return fault, pause, nil
}

// traffic is how many calls there were, and which may come.
type traffic struct {
	meters map[string]*Meter
	calls  map[string]int // by action
}

// takeTokens takes a token from each of the call's buckets and returns 0, or returns how long it
// takes until there is one.
func (t *traffic) takeTokens(call Call, options Options, now time.Time) time.Duration {
	if call.Free {
		return 0
	}
	own, most := "describing", options.Describing
	if call.Mutates {
		own, most = "mutating", options.Mutating
	}
	if b, ok := options.Buckets[call.Action]; ok {
		own, most = call.Action, b
	}
	if again := t.meterOf(own, most).Take(now); again > 0 || call.Bucket == "" {
		return again
	}
	return t.meterOf(call.Bucket, options.Buckets[call.Bucket]).Take(now)
}

// meterOf returns the bucket in use of that name.
func (t *traffic) meterOf(name string, b Bucket) *Meter {
	if t.meters[name] == nil {
		t.meters[name] = &Meter{Bucket: b}
	}
	return t.meters[name]
}

func (a *Account) latencyOf(action string) time.Duration {
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
