package sim

import (
	"context"
	"net/netip"
	"testing"
	"time"
)

// handClock moves when it is told to, or when somebody waits.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time { return c.now }

func (c *handClock) Wait(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

func newClock() *handClock { return &handClock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// newTestAccount has subnet "a" of 10.0.0.0/26 and fd00::/64, "b" of 10.0.1.0/28,
// "z" in another zone, and an instance "i" of 3 ENIs of 6 slots.
func newTestAccount(t testing.TB, o Options) *Account {
	t.Helper()
	a := newHalves(o)
	t.Cleanup(func() {
		if err := a.Check(); err != nil && !t.Failed() {
			t.Errorf("at the end the account is wrong:\n%v", err)
		}
	})
	return a
}

func newHalves(o Options) *Account {
	o.Reserve = EC2Reserve
	a := NewAccount(o)
	a.AddType(Type{Name: "small", ENIs: 3, V4: 6, V6: 6}, Type{Name: "old", ENIs: 2, V4: 6, NoPrefix: true},
		Type{Name: "cards", ENIs: 3, V4: 6, V6: 6, Cards: []int{2, 2}})
	for _, s := range []Subnet{
		{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/26"), V6: netip.MustParsePrefix("fd00::/64")},
		{ID: "b", V4: netip.MustParsePrefix("10.0.1.0/28")},
		{ID: "z", V4: netip.MustParsePrefix("10.0.2.0/26"), Zone: "elsewhere"},
	} {
		mustBe(a.AddSubnet(s))
	}
	a.AddGroup(Group{ID: "g1", Name: "default"})
	a.AddGroup(Group{ID: "g2", Name: "two"})
	a.AddGroup(Group{ID: "e1", Name: "enterprise", Enterprise: true})
	_, failed := a.AddInstance(Instance{ID: "i", Type: "small", Subnet: "a"})
	mustBe(failed)
	return a
}

// mustBe is for what can't go wrong.
func mustBe(err error) {
	if err != nil {
		panic(err)
	}
}

// wantReason fails the test unless the error has the reason; "" is no error.
func wantReason(t testing.TB, err error, want Reason) {
	t.Helper()
	if got := ReasonOf(err); got != want {
		t.Errorf("error %v, want reason %q", err, want)
	}
}

// act makes a mutating call.
func act[T any](t testing.TB, a *Account, c Call, f func(*Tx) (T, error)) (T, Answer, error) {
	t.Helper()
	c.Mutates = true
	return Do(t.Context(), a, c, f)
}

// makeENI makes an ENI in a subnet.
func makeENI(t testing.TB, a *Account, c Create) Interface {
	t.Helper()
	made, _, err := act(t, a, Call{Action: "Create"}, func(tx *Tx) (Interface, error) { return tx.Create(c) })
	must(t, err)
	return made
}

func attachENI(t testing.TB, a *Account, w Attach) (Attachment, error) {
	t.Helper()
	at, _, err := act(t, a, Call{Action: "Attach"}, func(tx *Tx) (Attachment, error) { return tx.Attach(w) })
	return at, err
}

func give(t testing.TB, a *Account, id string, w AddressRequest) (Got, error) {
	t.Helper()
	got, _, err := act(t, a, Call{Action: "Assign"}, func(tx *Tx) (Got, error) { return tx.Assign(id, w) })
	return got, err
}

func takeBack(t testing.TB, a *Account, id string, g Got) error {
	t.Helper()
	_, _, err := act(t, a, Call{Action: "Unassign"}, func(tx *Tx) (bool, error) { return true, tx.Unassign(id, g) })
	return err
}

func removeENI(t testing.TB, a *Account, id string) error {
	t.Helper()
	_, _, err := act(t, a, Call{Action: "Delete"}, func(tx *Tx) (bool, error) { return true, tx.Delete(id) })
	return err
}

func detachENI(t testing.TB, a *Account, id string) error {
	t.Helper()
	_, _, err := act(t, a, Call{Action: "Detach"}, func(tx *Tx) (Attachment, error) { return tx.Detach(id, false) })
	return err
}

// truthOf is an ENI as it is.
func truthOf(t testing.TB, a *Account, id string) (i Interface, ok bool) {
	t.Helper()
	a.View(0, func(tx *Tx) {
		var err error
		i, err = tx.Interface(id)
		ok = err == nil
	})
	return i, ok
}

// freeOf is a subnet's count.
func freeOf(t testing.TB, a *Account, subnet string) (n int) {
	t.Helper()
	a.View(0, func(tx *Tx) {
		s, err := tx.Subnet(subnet)
		must(t, err)
		n = s.Free
	})
	return n
}
