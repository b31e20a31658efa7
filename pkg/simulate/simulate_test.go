package simulate

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/google/go-cmp/cmp"
)

// batch is the agent's default.
func batch() Setting { return Setting{Name: "batch", Config: agentconf.Default()} }

// staying is n pods on one node that stay, the first at start.
func staying(n int, start, duration time.Duration) Load {
	l := Load{Name: "steady", Duration: duration, Nodes: make([][]Pod, 1)}
	for k := range n {
		l.Nodes[0] = append(l.Nodes[0], Pod{start + time.Duration(k)*time.Millisecond, duration})
	}
	return l
}

func mustRun(t *testing.T, w World, l Load, s Setting) Result {
	t.Helper()
	r, err := Run(t.Context(), w, l, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheSameArgumentsGiveTheSameResult(t *testing.T) {
	l, err := Generate("burst", Shape{Nodes: 3, Pods: 20, Duration: 3 * time.Hour, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	w := testWorld()
	w.Latency = map[string]sim.Latency{"": {Base: 100 * time.Millisecond, Jitter: time.Second}}
	w.Mutating = sim.Bucket{Burst: 3, Every: 2 * time.Second}
	first := mustRun(t, w, l, batch())
	if diff := cmp.Diff(first, mustRun(t, w, l, batch())); diff != "" {
		t.Error(diff)
	}
	w.Seed++
	if other := mustRun(t, w, l, batch()); cmp.Equal(first, other) {
		t.Error("another seed changes nothing")
	}
}

// With 10 pods of batches of 16 the pool is 32: 22 idle ones, for an hour.
func TestIdleAddressesAreSummedOverTime(t *testing.T) {
	r := mustRun(t, testWorld(), staying(10, time.Millisecond, time.Hour), batch())
	if r.Idle.AddressHours < 21.8 || r.Idle.AddressHours > 22.2 || r.Idle.Max < 22 {
		t.Errorf("idle: %+v", r.Idle)
	}
	if r.Pods != 10 || r.Waits.Never != 0 || r.Waits.Failed != 0 {
		t.Errorf("%d pods, waits %+v", r.Pods, r.Waits)
	}
}

func TestBinsHoldWhatTheTotalsSay(t *testing.T) {
	l := theLoad()
	r := mustRun(t, testWorld(), l, batch())
	calls, looks, longest := 0, 0, Seconds(0)
	for i, b := range r.Series {
		if step := l.Duration / time.Duration(len(r.Series)); time.Duration(b.Start) != time.Duration(i)*step {
			t.Fatalf("bin %d begins at %s", i, b.Start)
		}
		if b.Free > b.Owned || b.Owned-b.Free > b.Demand+r.Idle.Max {
			t.Errorf("bin %d: %+v", i, b)
		}
		calls, looks, longest = calls+b.Calls, looks+b.Describes, max(longest, b.Longest)
	}
	if calls != r.Calls.Changes() || looks != r.Calls.Describe || longest != r.Waits.Max {
		t.Errorf("bins have %d calls, %d looks, longest %s; the totals %+v %s", calls, looks, longest, r.Calls, r.Waits.Max)
	}
	if r.Calls.Attachments == 0 || r.Calls.Detachments == 0 || r.Calls.Assign == 0 || r.Calls.Unassign == 0 {
		t.Errorf("not every kind of call was made: %+v", r.Calls)
	}
}

func TestPodsWaitForOneDeliveryAndNoADDFails(t *testing.T) {
	r := mustRun(t, testWorld(), staying(36, 0, time.Hour), batch())
	// The pool of 16 is not enough for 36: an assign of 0.7 s and an ENI of 4.2 s.
	if w := r.Waits; time.Duration(w.Max) < 4*time.Second || time.Duration(w.Max) > 5*time.Second || w.Failed != 0 || w.Waited != 20 {
		t.Errorf("%+v", w)
	}
}

func TestWhoIsKnownBeforeHisADDWaitsLess(t *testing.T) {
	w := testWorld()
	late := mustRun(t, w, staying(36, time.Minute, time.Hour), batch())
	w.Lead = 2 * time.Second
	early := mustRun(t, w, staying(36, time.Minute, time.Hour), batch())
	if got, want := early.Waits.Max, late.Waits.Max-Seconds(w.Lead); (got - want).abs() > Seconds(100*time.Millisecond) {
		t.Errorf("known 2s before: %s, not known: %s", early.Waits.Max, late.Waits.Max)
	}
}

func (s Seconds) abs() Seconds { return Seconds(time.Duration(s).Abs()) }

func TestWithoutAddressesADDsFailAndPodsNeverGetOne(t *testing.T) {
	w := testWorld()
	w.Wait = 5 * time.Second
	w.Subnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/28") // 11 to give out, one is the node's
	r := mustRun(t, w, staying(14, 0, 10*time.Minute), batch())
	if r.Waits.Failed < 4*30 || r.Waits.Failed > 4*40 { // each tries every 15 to 20 s
		t.Errorf("%d ADDs failed", r.Waits.Failed)
	}
	if longest := time.Duration(r.Waits.Max); longest < 590*time.Second || r.Waits.Waited < 4 || r.Series[len(r.Series)-1].Waiting != 4 {
		t.Errorf("%+v, %d wait at the end", r.Waits, r.Series[len(r.Series)-1].Waiting)
	}
	// Those that end before the load does have never had one.
	l := staying(14, 0, 10*time.Minute)
	for k := range l.Nodes[0] {
		l.Nodes[0][k].End = 5 * time.Minute
	}
	if r := mustRun(t, w, l, batch()); r.Waits.Never != 4 || r.Waits.Max != Seconds(5*time.Minute-10*time.Millisecond) {
		t.Errorf("%+v", r.Waits)
	}
}

func TestAnAccountThatThrottlesServesAllInTheEnd(t *testing.T) {
	w := testWorld()
	w.Subnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/20")
	w.Mutating = sim.Bucket{Burst: 2, Every: 3 * time.Second}
	l := Load{Name: "all at once", Duration: 2 * time.Hour}
	for range 20 {
		l.Nodes = append(l.Nodes, staying(30, 10*time.Minute, 2*time.Hour).Nodes[0])
	}
	r := mustRun(t, w, l, batch())
	if r.Calls.Throttled == 0 || r.Series[len(r.Series)-1].Waiting != 0 || r.Pods != 600 {
		t.Errorf("%d pods, %+v, %d wait at the end", r.Pods, r.Calls, r.Series[len(r.Series)-1].Waiting)
	}
	if r.Waits.Max < Seconds(30*time.Second) {
		t.Errorf("the calls of 20 nodes passed in %s", r.Waits.Max)
	}
}

// At the end of a random load no address is on two nodes or has two owners.
func TestNoAddressIsHandedOutTwice(t *testing.T) {
	for _, kind := range Kinds() {
		l, err := Generate(kind, Shape{Nodes: 4, Pods: 25, Duration: 5 * time.Hour, Seed: 9})
		if err != nil {
			t.Fatal(err)
		}
		w := testWorld()
		w.Wait, w.MaxENIs = 5*time.Second, 11
		p, err := newPlay(w, l, batch(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for p.clock.runNext(l.Duration) {
		}
		p.stopAgents()
		if err := p.account.Check(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		owner := map[netip.Addr]string{}
		for _, n := range p.nodes {
			used := n.state.Used()
			if len(used) != n.used {
				t.Errorf("%s: %d addresses used, counted %d", kind, len(used), n.used)
			}
			for _, a := range used {
				if owner[a.Addr] != "" {
					t.Errorf("%s: %s has two owners", kind, a.Addr)
				}
				owner[a.Addr] = n.name
			}
		}
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	_, err := Run(ctx, testWorld(), theLoad(), batch(), func(done time.Duration) {
		if done > time.Hour {
			cancel(why)
		}
	})
	if !errors.Is(err, why) {
		t.Errorf("err = %v", err)
	}
}

func TestWhatCanNotBePlayedIsRefused(t *testing.T) {
	overlap := testWorld()
	overlap.Subnets = append(overlap.Subnets, Subnet{ID: "other", CIDR: netip.MustParsePrefix("10.0.0.128/25")})
	none := testWorld()
	none.Subnets = nil
	for name, c := range map[string]struct {
		w World
		l Load
	}{
		"no nodes":      {testWorld(), Load{Duration: time.Hour}},
		"no duration":   {testWorld(), Load{Nodes: make([][]Pod, 1)}},
		"no subnets":    {none, staying(1, 0, time.Hour)},
		"overlap":       {overlap, staying(1, 0, time.Hour)},
		"too many pods": {testWorld(), staying(51, 0, time.Hour)},
	} {
		if _, err := Run(t.Context(), c.w, c.l, batch(), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkADayOfANode(b *testing.B) {
	l, err := Generate("churn", Shape{Nodes: 1, Pods: 30, Duration: 24 * time.Hour, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Run(b.Context(), testWorld(), l, batch(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
