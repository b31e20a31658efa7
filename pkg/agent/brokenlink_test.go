package agent

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
)

// breakLink has the kernel refuse what the ENI of that link needs, or accept it again.
func (n *testNode) breakLink(device string, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = map[string]bool{device: is}
}

// The link of one ENI can't be set up for what it gets. Pods get what the others have and what comes to
// them, and people are told; with the link all of it is the pool's.
func TestAnENIWhoseLinkCantBeSetUpHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 9, V6: 9}, nil)
		defer n.stop()
		if has := n.total(); has != 16 {
			t.Fatalf("%d addresses, want two full ENIs", has)
		}
		gone := n.attached()[1].Addresses[:2]
		for _, addr := range gone {
			must(t, w.account.TakeAway(addr))
		}
		sleep(10 * time.Minute) // they are out of the node cache
		n.breakLink("eth1", true)
		for range 17 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		n.mu.Lock()
		for _, pod := range n.pods {
			if !n.routed[pod.addrs[0]] {
				t.Errorf("%s is a pod's and not routed", pod.addrs[0])
			}
		}
		n.mu.Unlock()
		for range 7 {
			_ = n.add()
		}
		sleep(5 * time.Minute)
		if left := n.retry(); left != 2 {
			t.Errorf("%d pods wait, want the two for whom only the broken link has room", left)
		}
		if st := n.status(); len(st.Causes) == 0 || !strings.Contains(st.Causes[0].What, "set link eth1 up") {
			t.Errorf("%+v, want the broken link", st.Causes)
		}
		n.breakLink("eth1", false)
		n.all(t, 5*time.Minute)
		for s := range n.life.agent.backoffs {
			if s.class == adopts {
				t.Errorf("%s is left though all is taken in", s)
			}
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// A node is started anew while the link of one ENI can't be set up: the others' addresses serve pods.
func TestANodeCacheIsBuiltBesideAnENIWhoseLinkCantBeSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 2, V4: 9, V6: 9}, nil)
		n.stop()
		n.cached, n.cacheErr, n.memory, n.routed = nil, nodecache.ErrMissing, nil, map[netip.Addr]bool{}
		n.breakLink("eth1", true)
		n.serial++
		n.start(-1, false)
		defer n.stop()
		sleep(time.Minute)
		if has := n.total(); has != 8 {
			t.Fatalf("%d addresses, want those of the primary ENI", has)
		}
		for range 8 {
			if err := n.add(); err != nil {
				t.Error(err)
			}
		}
		_ = n.add()
		n.breakLink("eth1", false)
		n.all(t, 5*time.Minute)
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// The link of one ENI can't be set up for hours. What the node has too many on the others goes to the cloud.
func TestAnENIWhoseLinkCantBeSetUpHoldsUpNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 4, V4: 9, V6: 9}, nil)
		defer n.stop()
		for range 30 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		n.breakLink("eth1", true)
		keys := n.keys()
		for _, k := range keys[4:] {
			n.del(k)
		}
		before := len(n.attached())
		sleep(2 * time.Hour)
		if now := len(n.attached()); now >= before {
			t.Errorf("%d ENIs are left of %d, with %d pods", now, before, len(n.keys()))
		}
		if st := n.status(); !strings.Contains(st.Problem, "set link eth1 up") {
			t.Errorf("problem %q, want the broken link", st.Problem)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// Links break and work again at random, beside all else that goes wrong: no pod gets an address that the
// kernel has nothing for, and in the end all comes right.
func TestLinksThatBreakAtRandomLoseNothing(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSoaker(t, seed, func(*testNode) {})
				for range 500 {
					if s.r.IntN(15) == 0 {
						n, device := s.nodes[s.r.IntN(len(s.nodes))], fmt.Sprintf("eth%d", s.r.IntN(5))
						s.note("%s: %s is broken, and no other link", n.name, device)
						n.breakLink(device, s.r.IntN(4) > 0)
					}
					s.step()
					s.after()
				}
				s.calm()
			})
		}) {
			return
		}
	}
}
