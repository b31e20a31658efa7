package agent

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// one is a world with one node of the given limits, its agent running and settled.
func one(t *testing.T, limits eni.Limits, change func(*testNode)) (*world, *testNode) {
	w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}, sim.ActAttach: {Base: 5 * time.Second}}},
		subnet("subnet-a", "10.0.1.0/24"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: limits, Subnet: "subnet-a"})
	if change != nil {
		change(n)
	}
	n.start(-1, false)
	time.Sleep(30 * time.Second)
	synctest.Wait()
	return w, n
}

var large = eni.Limits{ENIs: 4, V4: 50, V6: 50}

func (n *testNode) total() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cacheErr != nil {
		return -1
	}
	return len(n.cached.Addresses)
}

func TestAnEmptyNodeGetsABatchAndItsOwnENI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		defer n.stop()
		if got := n.total(); got != 16 {
			t.Errorf("pool of %d addresses, want a batch of 16", got)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// timeline is sources/cns-watch-pods.md: one pod is there, 35 come at once.
func timeline(t *testing.T, strategy scale.Strategy) (assigns, failed int, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.conf.Pool.Scale.Strategy = strategy })
		defer n.stop()
		if err := n.add(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		before, start := w.calls()["AssignAddresses"], time.Now()
		for range 35 {
			if n.add() != nil {
				failed++
			}
		}
		for left := 1; left > 0; {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			left = n.retry()
			if time.Since(start) > time.Minute {
				t.Fatalf("%d pods still wait after a minute", left)
			}
		}
		took = time.Since(start)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assigns = w.calls()["AssignAddresses"] - before
		if got := n.total(); got != 48 {
			t.Errorf("strategy %v: pool of %d addresses for 36 pods, want 48", strategy, got)
		}
	})
	return assigns, failed, took
}

func TestFromOneToThirtySixPodsIsOneRoundOfCalls(t *testing.T) {
	calls, waited, took := timeline(t, scale.Equation)
	t.Logf("equation: %d assign call(s), %d of 36 pods waited, all have an address after %s", calls, waited, took)
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
	calls, waited, took2 := timeline(t, scale.Reactive)
	t.Logf("reactive: %d assign call(s), %d of 36 pods waited, all have an address after %s", calls, waited, took2)
	if calls < 2 || took2 <= took {
		t.Errorf("reactive: %d calls in %s, want more than one and slower than %s", calls, took2, took)
	}
}

func TestThePoolDrainsFromTheNewestENI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 4, V4: 17, V6: 17}, nil)
		defer n.stop()
		n.addAndRetry(60)
		if left := n.retry(); left != 0 || len(n.attached()) != 4 {
			t.Fatalf("%d pods wait with %d ENIs", left, len(n.attached()))
		}
		for _, k := range n.keys()[4:] {
			n.del(k)
		}
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		nics := n.attached()
		if len(nics) != 1 || len(nics[0].Addresses) != 16 {
			t.Errorf("%d ENIs, the first with %d addresses; want the first with a batch", len(nics), len(nics[0].Addresses))
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

func TestARestartTearsNothingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		for range 10 {
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		n.mu.Lock()
		before := fmt.Sprint(n.cached.Addresses)
		n.mu.Unlock()
		calls := w.calls()
		n.kill()
		n.start(-1, false)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		n.mu.Lock()
		after := fmt.Sprint(n.cached.Addresses)
		n.mu.Unlock()
		if before != after {
			t.Errorf("the cache changed:\n%s\n%s", before, after)
		}
		now := w.calls()
		if now["AssignAddresses"] != calls["AssignAddresses"] || now["UnassignAddresses"] != calls["UnassignAddresses"] {
			t.Errorf("calls before %v, after %v", calls, now)
		}
		n.stop()
	})
}

func TestADamagedCacheIsRebuiltWithItsOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		defer n.stop()
		for range 10 {
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		n.mu.Lock()
		n.cacheErr = nodecache.ErrDamaged
		n.mu.Unlock()
		n.wake()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.cacheErr != nil {
			t.Fatalf("not rebuilt: %v", n.cacheErr)
		}
		for k := range n.pods {
			if len(n.cached.OwnedBy(k)) != 1 {
				t.Errorf("%s lost its address", k)
			}
		}
	})
}

func TestWhatTheCloudRefusesIsInTheStatusAndIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		kind error
		want string
	}{
		{"wrong credentials", cloud.ErrForbidden, "forbidden"},
		{"not reachable", cloud.ErrUnavailable, "unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, large, func(n *testNode) { n.w.account.Refuse(c.kind) })
				defer n.stop()
				st := n.status()
				if st.Ready || !strings.Contains(st.Problem, c.want) || st.LastError == "" {
					t.Errorf("status %+v: want not ready, a problem with %q, and the last error", st, c.want)
				}
				if calls := w.calls()["Limits"]; calls > 8 {
					t.Errorf("%d calls in 30s to a cloud that refuses", calls)
				}
				w.account.Refuse(nil)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if st := n.status(); !st.Ready || st.Problem != "" || n.total() != 16 {
					t.Errorf("%d addresses, status %+v: want 16, ready and no problem", n.total(), st)
				}
			})
		})
	}
}

func TestAnExhaustedSubnetIsNamedAndItsAddressesSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		defer n.stop()
		for range 16 {
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		time.Sleep(2 * time.Second)
		n.addAndRetry(3)
		synctest.Wait()
		st := n.status()
		if st.Exhausted == "" && len(st.TargetCauses) == 0 {
			t.Errorf("status %+v: want the subnet named", st)
		}
		_ = w.account.SetUnmanaged("subnet-a", 0)
		for range 900 {
			time.Sleep(time.Second)
			n.retry()
		}
		synctest.Wait()
		if left := n.retry(); left > 0 {
			t.Errorf("%d pods still wait a quarter of an hour after the subnet has room: %+v", left, n.status())
		}
	})
}

func TestAnAddressThatTheCloudTookAwayIsNeverHandedOutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		defer n.stop()
		if err := n.add(); err != nil {
			t.Fatal(err)
		}
		k := n.keys()[0]
		used := n.pods[k].addrs[0]
		free := n.attached()[0].Addresses[15]
		for _, a := range []netip.Addr{used, free} {
			w.taken[a] = true
			if err := w.account.TakeAway(a); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.account.SetUnmanaged("subnet-a", 1000) // so that they don't come back
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if st := n.status(); st.Addresses.Lost != 1 {
			t.Errorf("status %+v: want one lost address", st.Addresses)
		}
		n.del(k)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, line := range n.cached.Addresses {
			has := false
			for _, a := range n.attached()[0].Addresses {
				has = has || a == line.Addr
			}
			if !has {
				t.Errorf("%s is in the cache as %s and not in the cloud", line.Addr, line.State)
			}
		}
	})
}

func TestADeadSandboxIsReclaimedAfterTwoSightings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		defer n.stop()
		if err := n.add(); err != nil {
			t.Fatal(err)
		}
		n.mu.Lock()
		n.pods[keyOf(n)].dead = true
		n.mu.Unlock()
		time.Sleep(time.Minute)
		if len(n.keys()) == 0 {
			t.Error("reclaimed at the first sighting: its DEL had no time to come")
		}
		time.Sleep(5 * time.Minute)
		if len(n.keys()) != 0 {
			t.Error("not reclaimed after five minutes")
		}
	})
}

func keyOf(n *testNode) eni.Key {
	for k := range n.pods {
		return k
	}
	return eni.Key{}
}

func TestAnENIWhoseLinkIsLateIsWaitedForAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 17, V6: 17}, nil)
		defer n.stop()
		w.account.SetFaults(sim.Chance{Action: sim.ActAttach, Percent: 100, Fault: sim.Fault{Delay: 3 * time.Second}})
		for range 16 {
			_ = n.add()
		}
		time.Sleep(6 * time.Second) // the ENI is being made
		n.mu.Lock()
		for _, nic := range n.attached() {
			if nic.Ours {
				n.hidden[nic.MAC] = true
			}
		}
		hidden := len(n.hidden)
		n.mu.Unlock()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if p := n.status().Problem; hidden == 0 || !strings.Contains(p, "no link") {
			t.Fatalf("%d links hidden, problem %q: want the missing link named", hidden, p)
		}
		n.mu.Lock()
		clear(n.hidden)
		n.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := n.total(); got != 32 {
			t.Errorf("%d addresses once the link is up, want 32", got)
		}
	})
}

func TestPlanTellsAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		for range 12 {
			if err := n.add(); err != nil {
				t.Fatal(err)
			}
		}
		n.kill()
		before, calls := n.total(), w.calls()
		l := &life{killAt: -1, wake: make(chan struct{}, 1)}
		lines, err := n.agent(l, slog.New(slog.DiscardHandler)).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(lines, "\n")
		if !strings.Contains(text, "assign 16 ipv4 addresses to") || !strings.Contains(text, "target 32") {
			t.Errorf("plan:\n%s", text)
		}
		if n.total() != before || w.calls()["AssignAddresses"] != calls["AssignAddresses"] {
			t.Error("a plan changed something")
		}
	})
}

func TestANodeKeepsItsModeUntilTheFileNamesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) {
			n.conf.Pool.Mode, n.conf.Pool.PreAllocate, n.conf.Pool.MaxAboveWatermark = pool.BestEffort, 2, 4
			n.conf.ModeSet = false
		})
		n.stop()
		n.conf.Pool.Mode, n.conf.Pool.MaxAboveWatermark = pool.Batch, 0
		n.start(-1, false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := n.status().Mode; got != "besteffort" {
			t.Errorf("mode %s after the default changed, want besteffort as before", got)
		}
		n.stop()
		n.conf.ModeSet = true
		n.start(-1, false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := n.status().Mode; got != "batch" {
			t.Errorf("mode %s, want batch, which the file names", got)
		}
		n.stop()
	})
}

// 0 burstable ENIs are CCE's words for a node that is not burstable: what the node was
// before is then no mode to keep.
func TestANodeThatIsToldItIsNotBurstableIsBestEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) {
			n.conf.Pool.Mode, n.conf.Pool.Multiple, n.conf.ModeSet = pool.Burstable, 1, false
		})
		n.stop()
		n.conf.Pool.Mode, n.conf.Pool.Multiple = pool.BestEffort, 0
		n.start(-1, false)
		time.Sleep(time.Second)
		synctest.Wait()
		defer n.stop()
		if got := n.status().Mode; got != "besteffort" {
			t.Errorf("mode %s, want besteffort", got)
		}
	})
}

func TestNewSettingsReachTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		n.stop()
		n.conf.Settings.CoolDown = time.Minute
		n.conf.Settings.SNAT = false
		n.start(-1, false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		defer n.stop()
		n.mu.Lock()
		defer n.mu.Unlock()
		if s := n.cached.Settings; s.CoolDown != time.Minute || s.SNAT {
			t.Errorf("cache has %+v", s)
		}
	})
}

func TestCallsStayWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 8, V4: 3, V6: 3}, func(n *testNode) {
			n.conf.Cloud.CallsPerSec, n.conf.Cloud.CallsBurst = 1, 4
			n.conf.Pool.Scale.Batch = 1
			n.w.account.SetFaults(sim.Chance{Percent: 60, Fault: sim.Fault{Answer: sim.Lost}})
		})
		defer n.stop()
		for range 14 {
			_ = n.add()
			time.Sleep(3 * time.Second)
			n.retry()
		}
		synctest.Wait()
		sum := 0
		for _, c := range w.calls() {
			sum += c
		}
		if most := 4 + int(time.Since(w.begin).Seconds()) + 1; sum > most {
			t.Errorf("%d calls in %s, the budget allows %d", sum, time.Since(w.begin), most)
		}
	})
}
