package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func countENIs(t *testing.T, a *Account) (n int) {
	t.Helper()
	a.View(0, func(tx *Tx) { n = len(tx.Interfaces()) })
	return n
}

// makes is a call that makes an ENI.
func makes(t *testing.T, a *Account, token, params string) (Interface, Answer, error) {
	return act(t, a, Call{Action: "Create", Token: token, Params: params},
		func(tx *Tx) (Interface, error) { return tx.Create(Create{Subnet: "a"}) })
}

func TestATokenMakesOneENI(t *testing.T) {
	a := newTestAccount(t, Options{})
	one, _, err := makes(t, a, "t", "p")
	must(t, err)
	again, _, err := makes(t, a, "t", "p")
	must(t, err)
	if one.ID != again.ID || countENIs(t, a) != 2 {
		t.Errorf("one token made %s and %s", one.ID, again.ID)
	}
	_, _, err = makes(t, a, "t", "q")
	wantReason(t, err, TokenMismatch)
	other, _, err := makes(t, a, "u", "p")
	must(t, err)
	if other.ID == one.ID {
		t.Error("two tokens made one ENI")
	}
	_, _, err = act(t, a, Call{Action: "Other", Token: "t", Params: "q"}, func(*Tx) (int, error) { return 1, nil })
	must(t, err) // another action's tokens are others
}

func TestATokenOfACallThatFailedIsFree(t *testing.T) {
	a := newTestAccount(t, Options{})
	must(t, a.LeaveFree("a", 0))
	_, _, err := makes(t, a, "t", "p")
	wantReason(t, err, SubnetFull)
	must(t, a.LeaveFree("a", 5))
	made, _, err := makes(t, a, "t", "p")
	must(t, err)
	if made.ID == "" || countENIs(t, a) != 2 {
		t.Errorf("it made %+v", made)
	}
}

func TestEveryFaultDoesWhatItSays(t *testing.T) {
	throttled, broken := &Error{Reason: Throttled}, &Error{Reason: Unavailable}
	for _, tt := range []struct {
		name   string
		f      Fault
		reason Reason
		answer Break
		now    int // addresses that are new at once
		later  int // and a minute later
	}{
		{"none", Fault{}, "", Whole, 4, 4},
		{"an error before the effect", Fault{Err: throttled}, Throttled, Whole, 0, 0},
		{"an error after the effect", Fault{Err: broken, After: true}, Unavailable, Whole, 4, 4},
		{"a lost answer", Fault{Answer: Lost}, "", Lost, 4, 4},
		{"a cut answer", Fault{Answer: Cut}, "", Cut, 4, 4},
		{"a short answer", Fault{Answer: Short}, "", Short, 4, 4},
		{"a late effect", Fault{Later: time.Minute}, "", Lost, 0, 4},
		{"an error before a late effect", Fault{Err: broken, Later: time.Minute}, Unavailable, Whole, 0, 4},
		{"half of it", Fault{Partial: true}, "", Whole, 2, 2},
		{"half of it and an error", Fault{Partial: true, Err: broken, After: true}, Unavailable, Whole, 2, 2},
		{"a delay", Fault{Delay: time.Second}, "", Whole, 4, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := newClock()
			a := newTestAccount(t, Options{Clock: clock})
			one := makeENI(t, a, Create{Subnet: "a"})
			a.FailNext("Assign", tt.f)
			start := clock.now
			_, answer, err := act(t, a, Call{Action: "Assign"}, func(tx *Tx) (Got, error) { return tx.Assign(one.ID, AddressRequest{CountV4: 4}) })
			wantReason(t, err, tt.reason)
			if answer.Break != tt.answer || clock.now.Sub(start) != tt.f.Delay {
				t.Errorf("answer %v after %v", answer.Break, clock.now.Sub(start))
			}
			if i, _ := truthOf(t, a, one.ID); len(i.V4) != tt.now {
				t.Errorf("it has %d, want %d", len(i.V4), tt.now)
			}
			clock.now = clock.now.Add(time.Minute)
			if i, _ := truthOf(t, a, one.ID); len(i.V4) != tt.later {
				t.Errorf("later it has %d, want %d", len(i.V4), tt.later)
			}
			_, err = give(t, a, one.ID, AddressRequest{CountV4: 1})
			must(t, err) // one call, one fault
		})
	}
}

func TestASlowFaultPutsOffWhatTheCallBegins(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock})
	one := makeENI(t, a, Create{Subnet: "a"})
	a.FailNext("Attach", Fault{Slow: time.Minute})
	at, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	if at.Status != Attaching {
		t.Errorf("it is %s", at.Status)
	}
	clock.now = clock.now.Add(time.Minute)
	if i, _ := truthOf(t, a, one.ID); i.Attachment.Status != Attached {
		t.Errorf("it is %s after its time", i.Attachment.Status)
	}
}

func TestFaultsComeByChanceAndForAll(t *testing.T) {
	a := newTestAccount(t, Options{Seed: 1})
	a.SetFaults(Chance{Action: "Create", Percent: 50, Fault: Fault{Err: &Error{Reason: Throttled}}})
	failed := 0
	for range 40 {
		if _, _, err := makes(t, a, "", ""); err != nil {
			failed++
		}
	}
	if failed < 5 || failed > 35 {
		t.Errorf("%d of 40 failed", failed)
	}
	a.SetFaults()
	a.Refuse(&Error{Reason: Forbidden})
	_, _, err := makes(t, a, "", "")
	wantReason(t, err, Forbidden)
	a.Refuse(nil)
	before := a.Calls()["Create"]
	if _, _, err := makes(t, a, "", ""); err != nil && ReasonOf(err) != SubnetFull {
		t.Error(err)
	}
	if a.Calls()["Create"] != before+1 || before != 41 {
		t.Errorf("calls: %v", a.Calls())
	}
}

func TestBucketsLetSoManyCallsPass(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock, Mutating: Bucket{Burst: 2, Every: time.Second}, Buckets: map[string]Bucket{
		"Own": {Burst: 1, Every: time.Minute}, "extra": {Burst: 1, Every: time.Hour}}})
	try := func(c Call) error {
		_, _, err := Do(t.Context(), a, c, func(*Tx) (int, error) { return 0, nil })
		return err
	}
	for _, tt := range []struct {
		c    Call
		wait time.Duration
		want Reason
	}{
		{Call{Action: "x", Mutates: true}, 0, ""},
		{Call{Action: "y", Mutates: true}, 0, ""},
		{Call{Action: "x", Mutates: true}, 0, Throttled},
		{Call{Action: "x", Mutates: true}, time.Second, ""},
		{Call{Action: "Own", Mutates: true}, 0, ""},
		{Call{Action: "Own", Mutates: true}, time.Second, Throttled},
		{Call{Action: "Own", Mutates: true, Free: true}, 0, ""},
		{Call{Action: "see"}, 0, ""},
		{Call{Action: "see", Bucket: "extra"}, 0, ""},
		{Call{Action: "see", Bucket: "extra"}, 0, Throttled},
	} {
		clock.now = clock.now.Add(tt.wait)
		err := try(tt.c)
		wantReason(t, err, tt.want)
		if e, ok := errors.AsType[*Error](err); ok && e.RetryAfter <= 0 {
			t.Errorf("%v says nothing of when", err)
		}
	}
}

func TestACallWhoseCallerHasGoneDoesNothing(t *testing.T) {
	a := newTestAccount(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, answer, err := Do(ctx, a, Call{Action: "Create", Mutates: true}, func(tx *Tx) (Interface, error) { return tx.Create(Create{Subnet: "a"}) })
	if err == nil || answer.Break != Lost || countENIs(t, a) != 1 {
		t.Errorf("error %v, answer %v, %d ENIs", err, answer, countENIs(t, a))
	}
}

// leaver's caller goes away at its n-th wait.
type leaver struct {
	handClock
	n int
}

func (c *leaver) Wait(ctx context.Context, d time.Duration) error {
	if c.n--; c.n == 0 {
		return context.Canceled
	}
	return c.handClock.Wait(ctx, d)
}

func TestLatencyLiesOnBothSidesOfTheEffect(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2} {
		clock := &leaver{*newClock(), n}
		a := newTestAccount(t, Options{Clock: clock, Latency: map[string]Latency{"Create": {Base: time.Second}}})
		_, answer, err := makes(t, a, "", "")
		if !errors.Is(err, context.Canceled) || answer.Break != Lost || countENIs(t, a) != want {
			t.Errorf("gone at wait %d: error %v, answer %v, %d ENIs, want %d", n, err, answer, countENIs(t, a), want)
		}
	}
}

func TestDescribesLagAndNeverShowWhatHasNotBeen(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock, Lag: time.Second, Seed: 3})
	clock.now = clock.now.Add(time.Minute)
	one := makeENI(t, a, Create{Subnet: "a"})
	see := func() (n, room int) {
		_, _, err := Do(t.Context(), a, Call{Action: "see"}, func(tx *Tx) (int, error) {
			i, err := tx.Interface(one.ID)
			n = len(i.V4)
			if err != nil {
				n = -1
			}
			s, _ := tx.Subnet("a")
			room = s.Free
			return 0, nil
		})
		must(t, err)
		return n, room
	}
	seen := map[int]bool{}
	for range 50 {
		n, room := see()
		seen[n] = true
		if want := 57; n >= 0 && room != want || n < 0 && room != want+1 {
			t.Fatalf("%d addresses and %d free don't go together", n, room)
		}
	}
	if !seen[-1] || len(seen) != 1 {
		t.Errorf("at the moment of its making it is seen as %v", seen)
	}
	clock.now = clock.now.Add(500 * time.Millisecond)
	_, err := give(t, a, one.ID, AddressRequest{CountV4: 2})
	must(t, err)
	clock.now = clock.now.Add(250 * time.Millisecond)
	seen = map[int]bool{}
	for range 100 {
		n, _ := see()
		seen[n] = true
	}
	if !seen[-1] || !seen[0] || !seen[2] || len(seen) != 3 {
		t.Errorf("within the lag it is seen as %v", seen)
	}
	clock.now = clock.now.Add(2 * time.Second)
	must(t, removeENI(t, a, one.ID))
	clock.now = clock.now.Add(500 * time.Millisecond)
	seen = map[int]bool{}
	for range 50 {
		n, _ := see()
		seen[n] = true
	}
	if !seen[-1] || !seen[2] || len(seen) != 2 {
		t.Errorf("after it was deleted it is seen as %v", seen)
	}
	clock.now = clock.now.Add(time.Second)
	if n, _ := see(); n != -1 {
		t.Error("it is seen beyond the lag")
	}
}

func TestTheAccountIsSeenAsItWas(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock})
	a.Remember(time.Minute)
	clock.now = clock.now.Add(time.Minute)
	one := makeENI(t, a, Create{Subnet: "a"})
	for range 3 {
		clock.now = clock.now.Add(time.Second)
		_, err := give(t, a, one.ID, AddressRequest{CountV4: 1})
		must(t, err)
	}
	clock.now = clock.now.Add(time.Second)
	must(t, removeENI(t, a, one.ID))
	clock.now = clock.now.Add(10 * time.Second)
	for age, want := range map[time.Duration]int{0: -1, 9 * time.Second: -1, 10*time.Second + 1: 3, 11 * time.Second: 3, 11*time.Second + 1: 2,
		12*time.Second + 1: 1, 13*time.Second + 1: 0, 14 * time.Second: 0, 14*time.Second + 1: -1} {
		a.View(age, func(tx *Tx) {
			i, err := tx.Interface(one.ID)
			got := len(i.V4)
			if err != nil {
				got = -1
			}
			if s, _ := tx.Subnet("a"); got != want || s.Free != 58-(want+1) {
				t.Errorf("%v ago it had %d addresses with %d free, want %d", age, got, s.Free, want)
			}
		})
	}
}

func TestAnAnswerBreaksAsItsFaultSays(t *testing.T) {
	const text = "0123456789"
	for _, tt := range []struct {
		n    Answer
		body string
		err  bool // in reading it
		lost bool // there is none
	}{
		{Answer{}, text, false, false},
		{Answer{Break: Lost}, "", false, true},
		{Answer{Break: Cut}, text[:5], true, false},
		{Answer{Break: Short}, text[:5], false, false},
		{Answer{Rewrite: func(b []byte) []byte { return append(b, '!') }}, text + "!", false, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tt.n.Send(w, 201, []byte(text)) }))
		s.Config.ErrorLog = nil
		r, err := http.Post(s.URL, "", nil)
		if tt.lost != (err != nil) {
			t.Errorf("%+v: %v", tt.n, err)
		}
		if err == nil {
			body, err := io.ReadAll(r.Body)
			if string(body) != tt.body || tt.err != (err != nil) || r.StatusCode != 201 {
				t.Errorf("%+v: status %d, body %q, %v", tt.n, r.StatusCode, body, err)
			}
			_ = r.Body.Close()
		}
		s.Close()
	}
}

func TestAnErrorSaysItsReasonAndWhatItIsAbout(t *testing.T) {
	err := fail(SubnetFull, "a", "%d are left", 3)
	if got := err.Error(); got != "subnet has too few free addresses a: 3 are left" {
		t.Errorf("error %q", got)
	}
	if !errors.Is(err, &Error{Reason: SubnetFull}) || errors.Is(err, &Error{Reason: NoBlock}) || ReasonOf(io.EOF) != Unavailable {
		t.Error("reasons are mixed up")
	}
}
