package operator_test

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// An operator that was stopped while its calls waited for tokens sends none of them when it goes on after its lease (S6).
func TestNothingIsSentAfterTheLease(t *testing.T) {
	s := setup{nodes: 4, buckets: map[string]cloud.Bucket{sim.ActAssign: {Burst: 1, PerSecond: 0.1}, sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActShape: {Burst: 100, PerSecond: 20}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(time.Minute, func() bool { return w.Calls()[sim.ActAssign] > 0 })
		w.lead.pause()
		time.Sleep(lease.Duration - timeout)
		before := w.Calls()[sim.ActAssign]
		time.Sleep(5 * time.Minute)
		if n := w.Calls()[sim.ActAssign]; n != before || before == 4 {
			t.Errorf("%d calls after the lease, %d before", n-before, before)
		}
		w.lead.kill()
		w.leadWith(ctx, nil)
		w.until(5*time.Minute, w.isQuiet)
		w.check()
	})
}

// A release that the agent withdraws while it is being accepted is not accepted (S2), and its address serves a pod.
func TestAWithdrawalThatIsFasterThanTheAcceptanceWins(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(20)
		w.until(3*time.Minute, w.isQuiet)
		calls := w.Calls()[sim.ActUnassign]
		var withdrawn atomic.Bool
		w.store.mu.Lock()
		w.store.overtake = func(name string) {
			n := w.store.node(name)
			if len(n.Spec.Release) > 0 && len(n.Status.Releasing) == 0 && withdrawn.CompareAndSwap(false, true) {
				a.set(30) // it needs all of them
				a.mu.Lock()
				a.seen = n
				a.tick(ctx)
				a.mu.Unlock()
			}
		}
		w.store.mu.Unlock()
		a.set(12)
		w.until(3*time.Minute, func() bool { return withdrawn.Load() && w.isQuiet() })
		if len(w.store.node(a.name).Spec.Release) > 0 {
			t.Error("something is still published")
		}
		if n := w.Calls()[sim.ActUnassign] - calls; n != 0 {
			t.Errorf("%d calls took what was withdrawn", n)
		}
		w.check()
	})
}

// An operator that only observes tells what there is and changes nothing.
func TestAnObserverCallsNothingThatChanges(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, func(o *operator.Options) { o.Observe = true })
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(5)
		}
		time.Sleep(10 * time.Minute)
		reading := []string{sim.ActDescribe, sim.ActSubnets, sim.ActShape, sim.ActAlive}
		for action, n := range w.Calls() {
			if !slices.Contains(reading, action) {
				t.Errorf("%s was called %d times", action, n)
			}
		}
		n := w.store.node("node-000")
		if n.Status.Instance != "i-node-000" || len(n.Status.ENIs) != 1 || n.Status.Mode != crd.Self {
			t.Errorf("the status says %+v", n.Status)
		}
	})
}

// A status is written at most once a second while no pod waits, and each write says something new.
func TestAStatusIsNotWrittenTooOften(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		a.spare = 10
		var last time.Time
		var before crd.NodeNetworkStatus
		w.store.written = func(n *crd.NodeNetwork) {
			if d := time.Since(last); n.Spec.Waiting == 0 && d < time.Second {
				w.complain("written after %s", d)
			}
			if reflect.DeepEqual(before, n.Status) {
				w.complain("written again: %+v", n.Status)
			}
			last, before = time.Now(), n.Status
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for i := range 40 {
			a.set(i % 7)
			time.Sleep(700 * time.Millisecond)
		}
		w.until(5*time.Minute, w.isQuiet)
		w.check()
	})
}

// A subnet that is full is told, and one that comes new is used in the same describe, with nobody's help; its object is made.
func TestANewSubnetIsUsedWhereTheOtherIsFull(t *testing.T) {
	s := setup{nodes: 2, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/28")}}, conf: batchOf(4)}
	play(t, s, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(12)
		}
		full := func(name string) bool {
			n := w.store.node(name)
			return n != nil && slices.ContainsFunc(n.Status.Causes, func(b crd.Cause) bool { return b.Reason == "SubnetFull" })
		}
		w.until(11*time.Minute, func() bool { return full("node-000") && full("node-001") })
		w.until(6*time.Minute, func() bool {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			return w.store.subnets["a"] != nil && w.store.subnets["a"].Status.State == "Full"
		})
		w.must(w.AddSubnet(sim.Subnet{ID: "b", V4: mustPrefix("10.0.1.0/24"), Zone: w.zone(), Tags: forPods}))
		took := w.until(11*time.Minute, w.isQuiet)
		if took > 6*time.Minute {
			t.Errorf("the new subnet was used after %s, a describe comes every 5 minutes", took)
		}
		w.store.mu.Lock()
		b := w.store.subnets["b"]
		w.store.mu.Unlock()
		if b == nil || b.Spec.Use != "Shared" {
			t.Errorf("the new subnet's object: %+v", b)
		}
		w.check()
	})
}

// A running node goes from its agent's calls to the operator's and back. No pod loses its address, and what the agent had begun is
// finished or accepted, once.
func TestANodeChangesHandsWithAllItsPods(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		self := w.Driver("i-node-000", w.traits)
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(6)
		w.until(3*time.Minute, w.isQuiet)
		pods := a.used()
		a.change(crd.Self, nil)
		w.until(3*time.Minute, func() bool { return w.store.node(a.name).Status.Mode == crd.Self })
		if got := a.used(); !slices.Equal(got, pods) {
			t.Errorf("pods have %v, and had %v", got, pods)
		}
		calls := w.Calls()
		time.Sleep(10 * time.Minute)
		for _, action := range []string{sim.ActAssign, sim.ActUnassign, sim.ActCreate, sim.ActDelete} {
			if n := w.Calls()[action] - calls[action]; n != 0 {
				t.Errorf("%s was called %d times for a node that calls itself", action, n)
			}
		}
		// The agent begins an ENI of which it never hears, and a release.
		released := w.begunByTheAgent(ctx, self, a)
		a.change(crd.Operator, &crd.Handover{Tokens: []string{"begun-1"}, Release: []string{released.String()}})
		w.until(5*time.Minute, func() bool { return w.store.node(a.name).Status.Mode == crd.Operator })
		w.until(10*time.Minute, w.isQuiet)
		if got := a.used(); !slices.Equal(got, pods) {
			t.Errorf("pods have %v, and had %v", got, pods)
		}
		n := w.store.node(a.name)
		made := slices.IndexFunc(n.Status.ENIs, func(e crd.ENI) bool { return e.Token == "begun-1" })
		if made < 0 || n.Status.ENIs[made].State != "Attached" {
			t.Errorf("what the agent had begun is not there: %+v", n.Status.ENIs)
		}
		if on := w.places(); on[released] != "" {
			t.Errorf("%s is still on %s", released, on[released])
		}
		w.check()
	})
}

// What a subnet has left is shared by the nodes whose pods wait for it: nobody gets more while another could have as much.
func TestTheLastAddressesAreShared(t *testing.T) {
	account := sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}
	play(t, setup{nodes: 3, account: account}, func(ctx context.Context, w *world) {
		w.must(w.LeaveFree("a", 10))
		w.leadWith(ctx, nil)
		for i, pods := range []int{8, 3, 3} {
			w.agents[i].spare = 0
			w.agents[i].set(pods)
		}
		w.begin(ctx)
		time.Sleep(2 * time.Minute)
		for i, want := range []int{4, 3, 3} {
			if n := len(w.agents[i].used()); n != want {
				t.Errorf("node %d has %d addresses, want %d", i, n, want)
			}
		}
		w.must(w.LeaveFree("a", 100))
		w.until(11*time.Minute, w.isQuiet)
		w.check()
	})
}

// Where no subnet has anything left nodes are asked for their idle slots, those with most first, and each keeps one.
func TestIdleSlotsOfOthersServePodsThatWait(t *testing.T) {
	s := setup{nodes: 3, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/28")}}} // 13 addresses, all of them taken
	play(t, s, func(ctx context.Context, w *world) {
		for i, spare := range []int{8, 2, 0} {
			w.agents[i].spare = spare
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(6 * time.Minute)
		w.agents[2].set(5)
		if took := w.until(5*time.Minute, func() bool { return len(w.agents[2].used()) == 5 }); took > 10*time.Second {
			t.Errorf("served after %s", took)
		}
		w.until(10*time.Minute, w.isQuiet)
		// It stands as long as the zone has no room for what the node does without: else it would ask for that at once.
		time.Sleep(30 * time.Minute)
		if asked := w.store.node("node-000").Status.Reclaim; asked != 5 {
			t.Errorf("the first node is asked for %d slots, want 5", asked)
		}
		if a, b := len(w.agents[0].addresses()), len(w.agents[1].addresses()); a != 3 || b != 2 {
			t.Errorf("the others have %d and %d left, want 3 and 2", a, b)
		}
		w.agents[2].set(0)
		w.until(10*time.Minute, func() bool {
			return w.store.node("node-000").Status.Reclaim == 0 && len(w.agents[0].addresses()) == 8 && w.isQuiet()
		})
		w.check()
	})
}

// The objects are put back from a backup of minutes ago, while no operator runs (S5): no pod gets an address that has gone meanwhile, none
// loses its own, and the next operator's describe makes the objects true again.
func TestObjectsOfABackupBecomeTrueAgain(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(18)
		}
		w.until(3*time.Minute, w.isQuiet)
		backup := []*crd.NodeNetwork{w.store.node("node-000"), w.store.node("node-001")}
		for _, pods := range []int{4, 12} {
			for _, a := range w.agents {
				a.set(pods)
			}
			w.until(10*time.Minute, w.isQuiet)
		}
		before := [][]netip.Addr{w.agents[0].used(), w.agents[1].used()}
		w.lead.kill()
		for _, n := range backup {
			w.store.putBack(n)
		}
		time.Sleep(time.Minute) // the agents tell what they have seen
		for i, a := range w.agents {
			if n := w.store.node(a.name); n.Spec.SeenRevision <= n.Status.Revision {
				t.Errorf("%s has told nothing: %+v", a.name, n.Spec)
			}
			if got := a.used(); !slices.Equal(got, before[i]) {
				t.Errorf("%s has %v, and had %v", a.name, got, before[i])
			}
		}
		w.leadWith(ctx, nil)
		w.until(10*time.Minute, w.isQuiet)
		for i, a := range w.agents {
			if got := a.used(); !slices.Equal(got, before[i]) {
				t.Errorf("%s has %v, and had %v", a.name, got, before[i])
			}
		}
		w.check()
	})
}
