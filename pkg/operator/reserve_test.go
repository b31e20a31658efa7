package operator_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// subnet returns a copy of a Subnet object, nil if there is none.
func (s *store) subnet(name string) *crd.Subnet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subnets[name] == nil {
		return nil
	}
	return s.subnets[name].DeepCopy()
}

// name has a Subnet object name these ranges, as a person's change.
func (s *store) name(subnet string, ranges ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.subnets[subnet].DeepCopy()
	next.Spec.Reserve = ranges
	next.Generation++
	s.keepSubnet(next)
}

// forget deletes a Subnet object.
func (s *store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subnets[name]
	delete(s.subnets, name)
	s.tell("", operator.Event{Subnet: old.DeepCopy(), Deleted: true})
}

// reservedIn returns the ranges of a subnet that are reserved in the account, those of others with a star.
func (w *world) reservedIn(subnet string) string {
	var list []string
	w.View(0, func(tx *sim.Tx) {
		all, err := tx.Reservations(subnet)
		w.must(err)
		for _, r := range all {
			text := r.Range.String()
			if r.Description != "enipool/blue" {
				text += "*"
			}
			list = append(list, text)
		}
	})
	slices.Sort(list)
	return strings.Join(list, " ")
}

// reserveAs reserves a range for somebody else.
func (w *world) reserveAs(text string) (id string) {
	w.must(w.Update(func(tx *sim.Tx) error {
		made, err := tx.Reserve(sim.Reservation{Subnet: "a", Range: mustPrefix(text), Description: "enipool/red"})
		id = made.ID
		return err
	}))
	return id
}

// keptSays returns what the Subnet says of its reserved ranges: the condition, and the ranges.
func (w *world) keptSays() string {
	s := w.store.subnet("a")
	if s == nil {
		return ""
	}
	text := ""
	for _, c := range s.Status.Conditions {
		if c.Type == operator.Reserved {
			text = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	for _, r := range s.Status.Reserved {
		if r.ID == "" {
			w.complain("%s has no ID", r.CIDR)
		}
		text += " " + r.CIDR
	}
	return strings.TrimSpace(text)
}

func (w *world) untilItSays(want string) time.Duration {
	w.Helper()
	begin := time.Now()
	for w.keptSays() != want {
		if time.Sleep(250 * time.Millisecond); time.Since(begin) > 12*time.Minute {
			w.Fatalf("the subnet says %q, want %q; %s are reserved", w.keptSays(), want, w.reservedIn("a"))
		}
	}
	return time.Since(begin)
}

func (w *world) roomOf(ctx context.Context, id string) operator.Room {
	r, err := w.leading().Report(ctx)
	w.must(err)
	return r.Subnets[slices.IndexFunc(r.Subnets, func(s operator.Room) bool { return s.ID == id })]
}

// What a Subnet names is reserved, what it names no more is not any more, and what is others' stays. No node gets an address of it.
func TestWhatASubnetNamesIsReserved(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		theirs := w.reserveAs("10.0.9.0/28")
		w.leadWith(ctx, nil)
		w.begin(ctx)
		time.Sleep(time.Minute)
		if got := w.keptSays(); got != "" {
			t.Errorf("of no range the subnet says %q", got)
		}
		before := w.roomOf(ctx, "a").Room
		w.store.name("a", "10.0.1.0/24", "10.0.0.32/28", "10.0.1.64/28")
		if took := w.untilItSays("True Reserved 10.0.0.32/28 10.0.1.0/24"); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := w.reservedIn("a"); got != "10.0.0.32/28 10.0.1.0/24 10.0.9.0/28*" {
			t.Errorf("%s are reserved", got)
		}
		at := w.roomOf(ctx, "a").Room
		time.Sleep(11 * time.Minute)
		if later := w.roomOf(ctx, "a").Room; at != before-16-256 || later != at {
			t.Errorf("the subnet had room for %d, then for %d, and %d after describes", before, at, later)
		}
		for _, a := range w.agents {
			a.set(25)
		}
		w.until(5*time.Minute, w.isQuiet)
		for a := range w.places() {
			if mustPrefix("10.0.0.32/28").Contains(a) {
				t.Errorf("a node has %s", a)
			}
		}
		w.store.name("a", "10.0.0.32/29", "10.0.0.40/29")
		w.untilItSays("True Reserved 10.0.0.32/29 10.0.0.40/29")
		if got := w.reservedIn("a"); got != "10.0.0.32/29 10.0.0.40/29 10.0.9.0/28*" {
			t.Errorf("%s are reserved", got)
		}
		w.store.name("a")
		w.untilItSays("")
		if got := w.reservedIn("a"); got != "10.0.9.0/28*" {
			t.Errorf("%s are reserved, %s are others'", got, theirs)
		}
		calls := w.Calls()[sim.ActReserved]
		time.Sleep(30 * time.Minute)
		if n := w.Calls()[sim.ActReserved] - calls; n > 0 {
			t.Errorf("for no range it was asked %d times", n)
		}
		w.check()
	})
}

// The next leader changes nothing, and what somebody ended is reserved again.
func TestRangesStayReserved(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		l := w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(2*time.Minute, func() bool { return w.store.subnet("a") != nil })
		w.store.name("a", "10.0.1.0/24")
		w.untilItSays("True Reserved 10.0.1.0/24")
		l.kill()
		time.Sleep(20 * time.Second)
		calls := w.Calls()
		w.leadWith(ctx, nil)
		time.Sleep(2 * time.Minute)
		if now := w.Calls(); now[sim.ActReserve] != calls[sim.ActReserve] || now[sim.ActUnreserve] != calls[sim.ActUnreserve] || now[sim.ActReserved] == calls[sim.ActReserved] {
			t.Errorf("the next leader calls: %v, before it was %v", now, calls)
		}
		if got := w.keptSays(); got != "True Reserved 10.0.1.0/24" {
			t.Errorf("the subnet says %q", got)
		}
		w.must(w.Update(func(tx *sim.Tx) error {
			all, _ := tx.Reservations("a")
			_, err := tx.Unreserve(all[0].ID)
			return err
		}))
		w.until(6*time.Minute, func() bool { return w.reservedIn("a") == "10.0.1.0/24" })
		// Who deletes the object names no range any more.
		w.store.forget("a")
		w.until(12*time.Minute, func() bool { return w.reservedIn("a") == "" })
		w.store.name("a", "10.0.1.0/24")
		w.until(time.Minute, func() bool { return w.reservedIn("a") != "" })
		w.leading().kill() // and the next leader knows nothing of the object
		w.store.forget("a")
		time.Sleep(20 * time.Second)
		w.leadWith(ctx, nil)
		w.until(2*time.Minute, func() bool { return w.reservedIn("a") == "" })
		w.check()
	})
}

// Where others have reserved a part the subnet says so, and what is in their way no more is reserved.
func TestWhatOthersHaveReservedBarsARange(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		var mu sync.Mutex
		var reasons []string
		w.leadWith(ctx, func(o *operator.Options) {
			o.Tell = func(n operator.Notice) {
				mu.Lock()
				defer mu.Unlock()
				if n.Kind == "Subnet" {
					reasons = append(reasons, n.Reason)
				}
			}
		})
		w.begin(ctx)
		w.until(2*time.Minute, func() bool { return w.store.subnet("a") != nil })
		theirs := w.reserveAs("10.0.1.64/28")
		w.store.name("a", "10.0.1.0/24", "10.0.2.0/28")
		w.untilItSays("False Overlaps 10.0.2.0/28")
		w.must(w.Update(func(tx *sim.Tx) error { _, err := tx.Unreserve(theirs); return err }))
		w.untilItSays("True Reserved 10.0.1.0/24 10.0.2.0/28")
		w.store.name("a", "10.0.1.0/24", "10.9.2.0/28")
		w.untilItSays("False Invalid 10.0.1.0/24 10.0.2.0/28")
		if got := w.reservedIn("a"); got != "10.0.1.0/24 10.0.2.0/28" {
			t.Errorf("with a range of another subnet %s are reserved", got)
		}
		w.store.name("a", "10.0.1.0/24")
		w.untilItSays("True Reserved 10.0.1.0/24")
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(reasons, " "); got != "NotReserved Reserved NotReserved Reserved" {
			t.Errorf("people are told %s", got)
		}
		w.check()
	})
}

// barredRanges is a driver without the rights to reserved ranges.
type barredRanges struct {
	driver.Driver
	asked *atomic.Int64 // for those of b
}

func (d barredRanges) Reservations(_ context.Context, subnet string) ([]driver.Reservation, error) {
	if subnet == "b" {
		d.asked.Add(1)
	}
	return nil, &driver.Error{Kind: cloud.ErrForbidden, Why: cloud.Unauthorized, Detail: "you may not"}
}

func TestWithoutTheRightOnlySubnetsThatNameRangesSaySo(t *testing.T) {
	play(t, setup{nodes: 1, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/24")}, {ID: "b", V4: mustPrefix("10.0.1.0/24")}}}, func(ctx context.Context, w *world) {
		var asked atomic.Int64
		w.wrap = func(d driver.Driver) driver.Driver { return barredRanges{d, &asked} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(2*time.Minute, func() bool { return w.store.subnet("a") != nil })
		w.store.name("a", "10.0.0.64/28")
		w.untilItSays("False Forbidden")
		if s := w.store.subnet("b"); len(s.Status.Conditions) > 0 {
			t.Errorf("the other one says %+v", s.Status.Conditions)
		}
		time.Sleep(30 * time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("for a subnet of which nobody named a range it was asked %d times", n)
		}
	})
}

func TestWhereNoRangesAreReservedTheSubnetSaysSo(t *testing.T) {
	play(t, setup{nodes: 1, likeBCE: true}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(2*time.Minute, func() bool { return w.store.subnet("a") != nil })
		w.store.name("a", "10.0.1.0/24")
		w.untilItSays("False NotSupported")
		w.store.name("a")
		w.untilItSays("")
	})
}

func TestAnObserverReservesNothing(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, func(o *operator.Options) { o.Observe = true })
		w.begin(ctx)
		w.until(2*time.Minute, func() bool { return w.store.subnet("a") != nil })
		w.store.name("a", "10.0.1.0/24")
		time.Sleep(20 * time.Minute)
		if got := w.keptSays() + w.reservedIn("a"); got != "" {
			t.Errorf("it says or has reserved %s", got)
		}
	})
}

// Requests that are throttled are made later, and none is lost.
func TestReservationsWaitForTheirTokens(t *testing.T) {
	s := setup{nodes: 1, buckets: map[string]cloud.Bucket{sim.ActReserve: {Burst: 1, PerSecond: 0.1}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(2*time.Minute, func() bool { return w.store.subnet("a") != nil })
		var want []string
		for i := range 6 {
			want = append(want, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i * 16)}), 28).String())
		}
		w.store.name("a", want...)
		if took := w.untilItSays("True Reserved " + strings.Join(want, " ")); took < 50*time.Second || took > time.Minute {
			t.Errorf("six requests of one each ten seconds took %s", took)
		}
		w.check()
	})
}
