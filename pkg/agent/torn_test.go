package agent

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// tear damages the record of the cache's address i, as nodecache reads it.
func (n *testNode) tear(i int) {
	cached := n.cached.Clone()
	line := cached.Addresses[i]
	cached.Addresses = slices.Delete(cached.Addresses, i, i+1)
	cached.Damaged = append(cached.Damaged, ipam.Damage{Record: i, Addr: line.Addr, Owner: line.Owner, Cause: "torn"})
	n.cached = cached
	n.wake()
}

// tearFree damages the record of one free address.
func (n *testNode) tearFree(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.State == eni.Free })
	if i < 0 {
		t.Fatal("no address is free")
	}
	n.tear(i)
}

// isRebuilt fails the test unless the agent has built the node cache anew.
func (n *testNode) isRebuilt(t *testing.T) {
	t.Helper()
	sleep(20 * time.Minute)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cacheErr != nil || len(n.cached.Damaged) > 0 {
		t.Errorf("20 minutes later the torn record is still in the node cache: %v", n.life.agent.backoffs[of(rebuilds)].err)
	}
}

// Somebody takes an address away from a pod, and the cloud gives it to another ENI of the same node: the
// pod keeps the line, as lost. Then one record of the node cache is torn.
func TestARebuildPassesAnAddressThatIsOnAnotherENIByNow(t *testing.T) {
	for name, torn := range map[string]bool{"nothing is torn": false, "a record is torn": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, eni.Limits{ENIs: 6, V4: 17}, func(n *testNode) { n.conf.Pool.Scale.MinPool = 40 })
				defer n.stop()
				for range 6 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				x := n.pods[n.keys()[0]].addrs[0]
				w.taken[x] = true
				if err := w.account.TakeAway(x); err != nil {
					t.Fatal(err)
				}
				// Here a request names it; else the next Assign gets the lowest that is free, which it may be.
				c, nics := engine.New(w.account.NodeDriver(n.name), w.account.NodeOptions(n.name)), n.attached()
				roomy := slices.MinFunc(nics, func(a, b cloud.Interface) int { return len(a.Addresses) - len(b.Addresses) })
				if got, err := c.AssignExactly(t.Context(), roomy.ID, []netip.Addr{x}); err != nil || len(got) != 1 {
					t.Fatal(got, err)
				}
				sleep(15 * time.Minute)
				n.mu.Lock()
				for _, line := range n.cached.Addresses {
					if line.Addr == x {
						t.Logf("%s is %s on ENI %d in the cache, lost: %t; in the cloud on %s, index %d", x, line.State, line.ENI, line.Lost, roomy.ID, roomy.Index)
					}
				}
				n.mu.Unlock()
				if torn {
					n.tearFree(t)
				}
				n.isRebuilt(t)
				for range 60 {
					_ = n.add()
				}
				sleep(5 * time.Minute)
				if left := n.retry(); left > 0 {
					t.Errorf("%d pods wait, problem %q", left, n.status().Problem)
				}
			})
		})
	}
}

// An ENI goes and another comes in its place, as each pool does that shrinks and grows. Before the
// node cache knows it, one record of it is torn.
func TestARebuildPassesAnENIThatHasThePlaceOfOneThatIsGone(t *testing.T) {
	for name, torn := range map[string]bool{"nothing is torn": false, "a record is torn": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, eni.Limits{ENIs: 4, V4: 9}, nil)
				for range 4 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				sleep(2 * time.Minute)
				n.stop()
				gone := n.attached()[1]
				for _, line := range n.cached.Used() {
					if line.ENI == gone.Index {
						t.Fatal("a pod has an address of it")
					}
				}
				c := engine.New(w.account.NodeDriver(n.name), w.account.NodeOptions(n.name)) // what the agent had begun
				if err := c.DeleteInterface(t.Context(), gone.ID); err != nil {
					t.Fatal(err)
				}
				made, err := c.CreateInterface(t.Context(), cloud.Create{Token: "enipool-0123456789abcdef", Subnet: "subnet-a", V4: 8})
				if err != nil || made.Index != gone.Index {
					t.Fatalf("%+v, %v", made, err)
				}
				if torn {
					n.mu.Lock()
					n.life.dead = true
					n.mu.Unlock()
					n.tearFree(t)
				}
				n.serial++
				n.start(-1, false)
				defer n.stop()
				n.isRebuilt(t)
				for range 12 {
					_ = n.add()
				}
				sleep(5 * time.Minute)
				if left := n.retry(); left > 0 {
					t.Errorf("%d pods wait; problem %q", left, n.status().Problem)
				}
			})
		})
	}
}

// What keeps the agent from building the node cache anew is said where people look first.
func TestARebuildThatFailsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 4, V4: 9}, nil)
		defer n.stop()
		_ = n.add()
		n.all(t, time.Minute)
		hide := func(hidden bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.hidden[n.attached()[0].MAC] = hidden
		}
		hide(true)
		n.tearFree(t)
		sleep(time.Minute)
		if got := n.status().Problem; !strings.HasPrefix(got, "node cache: ") || !strings.Contains(got, "the node's primary ENI is not there") {
			t.Errorf("problem %q", got)
		}
		hide(false)
		n.isRebuilt(t)
		if got := n.status().Problem; got != "" {
			t.Errorf("problem %q though it is built", got)
		}
	})
}

// A pod has gone a moment ago, and the record of that is torn: its address rests all the same,
// and one that the cloud was asked to take is not given to a pod after a rest.
func TestAnAddressWhoseRecordIsTornRests(t *testing.T) {
	for name, state := range map[string]eni.State{"cooling": eni.Cooling, "free": eni.Cooling, "on its way back": eni.Releasing} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, eni.Limits{ENIs: 4, V4: 9}, nil)
				defer n.stop()
				for range 4 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				sleep(time.Minute)
				k := n.keys()[0]
				x := n.pods[k].addrs[0]
				n.del(k)
				n.mu.Lock()
				at := slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.Addr == x })
				switch name {
				case "free":
					at = slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.State == eni.Free })
					x = n.cached.Addresses[at].Addr
				case "on its way back":
					n.life.agent.mem.Begun[x] = true
				}
				n.tear(at)
				n.mu.Unlock()
				sleep(2 * time.Second)
				n.mu.Lock()
				defer n.mu.Unlock()
				at = slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.Addr == x })
				switch {
				case at < 0 && state == eni.Releasing: // the cloud has it by now
				case at < 0:
					t.Errorf("%s is not in the cache", x)
				case n.cached.Addresses[at].State != state:
					t.Errorf("%s is %s, want it %s", x, n.cached.Addresses[at].State, state)
				}
			})
		})
	}
}

// An agent ends after it has taken an address out of the cache, and before it has written down
// that the release is over. The next one finds the cache damaged.
func TestARebuildEndsReleasesOfWhatIsNotOnItsWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		defer n.stop()
		_ = n.add()
		n.all(t, time.Minute)
		sleep(time.Minute)
		n.mu.Lock()
		n.life.agent.mem.Begun[netip.MustParseAddr("10.0.1.250")] = true
		n.cacheErr = nodecache.ErrDamaged
		n.wake()
		n.mu.Unlock()
		sleep(5 * time.Second)
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.cacheErr != nil || len(n.life.agent.mem.Begun) > 0 {
			t.Errorf("cache %v, releases %v", n.cacheErr, n.life.agent.mem.Begun)
		}
	})
}
