package order

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestACallEndsBeforeTheLease(t *testing.T) {
	l := Lease{Duration: 15 * time.Second, Settle: 10 * time.Second, Fence: 6 * time.Minute}
	for _, test := range []struct {
		now, renewed time.Duration
		want         bool
	}{{100, 100, true}, {104, 100, true}, {105, 100, false}, {160, 100, false}} {
		if got := l.MayCall(test.now*time.Second, test.renewed*time.Second, 10*time.Second); got != test.want {
			t.Errorf("%d s, renewed at %d s: %v", test.now, test.renewed, got)
		}
	}
	if err := l.Validate(10 * time.Second); err != nil {
		t.Error(err)
	}
	for _, timeout := range []time.Duration{0, 15 * time.Second, 30 * time.Second} {
		if l.Validate(timeout) == nil {
			t.Errorf("timeout %s is fine for a lease of %s", timeout, l.Duration)
		}
	}
	if short := (Lease{Duration: l.Duration, Settle: l.Settle, Fence: time.Second}); short.Validate(10*time.Second) == nil {
		t.Error("a fence below the timeout is fine")
	}
	if l.MayDescribe(109*time.Second, 100*time.Second) || !l.MayDescribe(110*time.Second, 100*time.Second) {
		t.Error("a leader believes a describe from settle after it got the lease")
	}
}

func TestAnENIHasTheTokenOfItsSerial(t *testing.T) {
	// printf 'uid-1|1' | sha256sum | xxd -r -p | base32, its first 32 characters
	const first = "PVYLAN7A2HTACMRX73GWWIQT6S3AVNMB"
	if got := Token("uid-1", 0); got != first || len(got) != 32 {
		t.Errorf("%s, want %s", got, first)
	}
	term := NewTerm(lease, 1, 0)
	v := View{Status: Status{Mode: Operator, Epoch: 1}}
	made := ENI{ID: "eni-b", Token: first, State: Attached}
	v.Status = term.Made(v, Moment{}, "uid-1", made)
	again := term.Made(v, Moment{}, "uid-1", made) // the answer of a call that was repeated
	if v.Status.Created != 1 || again.Created != 1 || len(again.ENIs) != 1 {
		t.Errorf("%+v, again %+v", v.Status, again)
	}
	// One that a describe has shown before its call was answered counts once too.
	v.Status.Created = 0
	if got := term.Made(v, Moment{}, "uid-1", made); got.Created != 1 || len(got.ENIs) != 1 {
		t.Errorf("%+v", got)
	}
	if Token("uid-1", 1) == first || Token("uid-2", 0) == first {
		t.Error("two ENIs have one token")
	}
}

func TestALeaderIsNumberedAboveAll(t *testing.T) {
	if got := NextEpoch(3, 7, 5); got != 8 {
		t.Errorf("%d", got)
	}
	if got := NextEpoch(9, 7, 5); got != 10 {
		t.Errorf("%d", got)
	}
}

func TestAStatusOnlyGrows(t *testing.T) {
	old := Status{Revision: 5, Epoch: 2, Created: 3, Releasing: hosts(10)}
	for _, test := range []struct {
		name   string
		change func(*Status)
		want   bool
	}{
		{"nothing", func(*Status) {}, true},
		{"a change with its revision", func(s *Status) { s.Releasing, s.Revision = nil, 6 }, true},
		{"a change without", func(s *Status) { s.Releasing = nil }, false},
		{"revision", func(s *Status) { s.Revision = 4 }, false},
		{"epoch", func(s *Status) { s.Revision, s.Epoch = 6, 1 }, false},
		{"created", func(s *Status) { s.Revision, s.Created = 6, 2 }, false},
	} {
		next := old.clone()
		if test.change(&next); Follows(old, next) != test.want {
			t.Errorf("%s: %v", test.name, !test.want)
		}
	}
}

// TestAnObjectThatWasPutBack: the agent changes nothing and says what it has seen; the operator accepts nothing, describes,
// and goes on above that (S5).
func TestAnObjectThatWasPutBack(t *testing.T) {
	m := newMachine("", 1, x, "10.0.0.11/32")
	n := m.nodes[0]
	n.agent.head.Revision = 8 // what came after version 0 is forgotten
	m.move(addr, others)
	n.agent.state.StartRelease([]netip.Addr{addr.Addr()}, m.now)
	n.agent.state.DropReleased([]netip.Addr{addr.Addr()})
	n.versions[0].Spec.Release = []netip.Prefix{addr}
	m.adopt(0)
	if len(n.agent.state.Addresses) > 0 {
		t.Fatalf("adopted %+v", n.agent.state.Addresses)
	}
	m.send(0, Seen(n.agent.state, n.current(), n.agent.head), nil)
	m.land(0, 0, true)
	reads(m)
	accepts(m)
	if len(n.current().Status.Releasing) > 0 {
		t.Fatal("accepted what an old spec says")
	}
	m.pass(lease.Settle)
	looks(m)
	if n.current().Status.Revision != 1 {
		t.Fatal("calls of before may still be under way")
	}
	m.pass(lease.Fence)
	looks(m)
	// One describe does not prove that it is gone, but what it lacks no pod gets.
	if s := n.current().Status; s.Revision != 9 || !slices.Contains(s.quarantinedPrefixes(), addr) {
		t.Fatalf("%+v", s)
	}
	sees(m)
	m.addPod(0)
	if n.agent.head.Revision != 9 || m.violation() != "" {
		t.Errorf("head %+v, %s", n.agent.head, m.violation())
	}
	m.pass(lease.Settle)
	looks(m)
	if s := n.current().Status; slices.Contains(s.ENIs[0].Addresses, addr) || len(s.Quarantined) > 0 {
		t.Errorf("after the second describe: %+v", s)
	}
}

// A leader that has seen the object before end knows the new one's agent from one that has seen a store that was put back, for as long as nothing was
// written of the new one.
func TestAnObjectThatFollowsOneThatHasEndedIsNotBehind(t *testing.T) {
	at := func(of time.Duration) Moment { return Moment{Mono: of} }
	object := func(seen, revision int64) View {
		return View{Spec: Spec{SeenRevision: seen}, Status: Status{Revision: revision}}
	}
	follows := func() *Term {
		term := NewTerm(lease, 1, 0)
		term.Follow(8, time.Hour)
		return term
	}
	now := at(2 * time.Hour)
	if !follows().Knows(object(8, 0), now, now) {
		t.Error("the agent remembers the object before: that is no sign of a store that was put back")
	}
	if follows().Knows(object(9, 0), now, now) {
		t.Error("it has seen more than this leader")
	}
	if follows().Knows(object(8, 3), now, now) {
		t.Error("the object was led: that is another one than followed")
	}
	later := follows()
	later.Knows(object(0, 1), now, now)
	if later.Knows(object(8, 0), now, now) {
		t.Error("the new object was ahead, and is behind now: it was put back")
	}
	if lease.MayDescribe(time.Hour+lease.Settle-1, follows().Acquired) {
		t.Error("a describe may not show yet what the last calls about the object before did")
	}
}

// An ENI goes when all on it is out, and stays if something of it is withdrawn first.
func TestAnENIIsAcceptedWhenAllOnItIsOut(t *testing.T) {
	spec, status := fullNode(16)
	status.Epoch = 1
	v := View{spec, status}
	all := status.ENIs[1].Addresses
	v.Spec.Release = all[1:]
	if got := PublishInterfaces(v, v.Spec, "eni-1"); len(got.ReleaseInterfaces) > 0 {
		t.Error("published with an address in service")
	}
	v.Spec.ReleaseInterfaces = []string{"eni-1"}
	term := NewTerm(lease, 1, 0)
	if next, _ := term.Accept(v); len(next.LeavingInterfaces) > 0 {
		t.Error("accepted with an address in service")
	}
	v.Spec.Release = all
	kept, back := Withdraw(v, v.Spec, Addresses(status.Limits, all[0]))
	if len(back) != 1 || len(kept.ReleaseInterfaces) > 0 {
		t.Errorf("withdrawn %v, ENIs %v", back, kept.ReleaseInterfaces)
	}
	next, accepted := term.Accept(v)
	if !accepted || !slices.Equal(next.LeavingInterfaces, []string{"eni-1"}) || len(next.Releasing) != 16 || !Follows(status, next) {
		t.Fatalf("%+v", next)
	}
	if left := term.Unassignable(View{v.Spec, next}); len(left) > 0 {
		t.Errorf("what goes with its ENI is unassigned: %v", left)
	}
	if gone := term.Deleted(View{v.Spec, next}, "eni-1"); len(gone.ENIs) != 1 || len(gone.Releasing)+len(gone.LeavingInterfaces)+len(gone.Quarantined) > 0 {
		t.Errorf("deleted: %+v", gone)
	}
	if free := Confirmed(View{kept, next}, back); len(free) > 0 {
		t.Errorf("%v are free on an ENI that leaves", free)
	}
}

// What a leader did itself counts more than a describe for settle, of addresses and ENIs alike.
func TestADescribeThatLagsChangesNothing(t *testing.T) {
	made, _ := machineENI("eni-a")
	v := View{Status: Status{Mode: Operator, Epoch: 1, ENIs: []ENI{made}}}
	term := NewTerm(lease, 1, 0)
	at := func(s time.Duration) Moment { return Moment{Mono: s * time.Second, Wall: time.Unix(int64(s), 0)} }
	second := ENI{ID: "eni-b", State: Attached}
	v.Status = term.Made(v, at(100), "uid", second)
	v.Status = term.Assigned(v, at(100), "eni-a", hosts(10)...)
	v.Status.ENIs[0].Addresses = append(v.Status.ENIs[0].Addresses, hosts(11)...)
	if late := term.Unassigned(v, at(100), hosts(11)...); !slices.Equal(late.ENIs[0].Addresses, v.Status.ENIs[0].Addresses) {
		t.Errorf("an answer for what nobody released removes it: %+v", late)
	}
	v.Status.Releasing = hosts(11)
	v.Status = term.Unassigned(v, at(100), hosts(11)...)
	past := map[string][]netip.Prefix{"eni-a": hosts(11)}
	if got, changed := term.Described(v, at(102), Description{Began: at(101), Shown: past}); changed {
		t.Errorf("changed to %+v", got)
	}
	v.Status, _ = term.Described(v, at(102), Description{Began: at(102), Shown: past})
	if e := v.Status.ENIs; !slices.Equal(e[0].Addresses, hosts(10, 11)) || e[1].State != Attached {
		t.Errorf("after settle it shows what is there: %+v", v.Status)
	}
	got, changed := term.Described(v, at(104), Description{Began: at(104), Shown: past})
	if e := got.ENIs; !changed || !slices.Equal(e[0].Addresses, hosts(11)) || e[1].State != Detached {
		t.Errorf("another one shows what is not: %+v", got)
	}
}
