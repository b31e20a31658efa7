package agent

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// TestNothingIsLostInBlocks is TestNothingIsLostOrHandedOutTwice where addresses come
// in blocks, and subnets now and then have no whole one.
func TestNothingIsLostInBlocks(t *testing.T) {
	if *soakSeed != 0 {
		soakInBlocks(t, *soakSeed)
		return
	}
	for seed := uint64(1); int(seed) <= max(1, steps()/stepsPerSeed/4); seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { soakInBlocks(t, seed) }) {
			t.Fatalf("replay with: go test ./pkg/agent -run LostInBlocks -soak.seed %d", seed)
		}
	}
}

func soakInBlocks(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoakerOf(t, seed, limitsInBlocks, func(*testNode) {})
		// Single addresses may look like a block that leaves room for more: whether they
		// do is tried every ten minutes, on each of at most five ENIs of both nodes.
		s.vain = 40
		for range stepsPerSeed {
			if s.r.IntN(20) == 0 {
				id, broken := []string{"subnet-a", "subnet-b"}[s.r.IntN(2)], s.r.IntN(3) == 0
				s.note("whole blocks in %s: %v", id, !broken)
				must(t, s.account.Fragment(id, broken))
			}
			s.step()
			s.after()
		}
		must(t, s.account.Fragment("subnet-a", false))
		must(t, s.account.Fragment("subnet-b", false))
		s.calm()
	})
}

// limitsInBlocks lets addresses come in small blocks, those of IPv6 in one an ENI.
func limitsInBlocks(l eni.Limits, r *rand.Rand) eni.Limits {
	l.V4Block, l.V4 = eni.Block{Bits: 30, Size: 4}, 1+4*(1+r.IntN(6))
	if r.IntN(3) > 0 {
		l.V6Block, l.V6 = eni.Block{Bits: 80, Size: l.V4 - 1}, l.V4
	}
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// slashes28 is an instance whose IPv4 addresses come in /28s, up to n on an ENI.
func slashes28(n int) eni.Limits {
	return eni.Limits{ENIs: 3, V4: 1 + 16*n, V4Block: eni.Block{Bits: 28, Size: 16}}
}

func TestSlotsThatSingleAddressesTookDoNotStopOtherENIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/23"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: slashes28(30), Subnet: "subnet-a"})
		// Two parts of blocks and, in between, 16 addresses that look like one.
		must(t, w.account.Fragment("subnet-a", true))
		own := n.attached()[0].ID
		_, err := w.account.Node("n1").AssignAddresses(t.Context(), own, eni.IPv4, 30)
		must(t, err)
		must(t, w.account.Fragment("subnet-a", false))
		n.start(-1, false)
		defer n.stop()
		sleep(10 * time.Second)
		for range 60 {
			_ = n.add()
		}
		sleep(10 * time.Second)
		if left := n.retry(); left > 0 {
			t.Errorf("%d pods wait: %+v", left, n.status())
		}
		if nics := n.attached(); len(nics) != 2 || len(nics[0].Addresses) != 30 || len(nics[1].Addresses)%16 != 0 {
			t.Errorf("the node has %+v", nics)
		}
		must(t, w.check())
	})
}

func TestANodeOfBlocksGrowsAndShrinksByThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/23"))
		conf := testConfig("n1")
		conf.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
		conf.Pool.Scale.Batch, conf.Pool.Scale.MinFree = 5, 50
		limits := slashes28(2)
		limits.V6, limits.V6Block = 33, eni.Block{Bits: 80, Size: 32}
		n := w.addNode(conf, sim.NodeSpec{Limits: limits, Subnet: "subnet-a"})
		n.start(-1, false)
		defer n.stop()
		has := func(when string, want ...string) {
			t.Helper()
			var got []string
			for _, nic := range n.attached() {
				v6 := 0
				for _, a := range nic.Addresses {
					if a.Is6() {
						v6++
					}
				}
				got = append(got, fmt.Sprintf("%d+%d", len(nic.Addresses)-v6, v6))
			}
			if !slices.Equal(want, got) {
				t.Errorf("%s the ENIs have %v, want %v", when, got, want)
			}
		}
		pods := func(count int) {
			t.Helper()
			for range count {
				_ = n.add()
			}
			sleep(10 * time.Second)
			if left := n.retry(); left > 0 {
				t.Errorf("%d pods wait: %+v", left, n.status())
			}
			sleep(10 * time.Second)
		}
		sleep(10 * time.Second)
		has("at first", "16+32")
		pods(12)
		has("with 12 pods", "16+32")
		pods(1)
		has("with 13", "32+32")
		pods(20)
		has("with 33", "32+32", "16+32")
		for _, k := range n.keys()[14:] {
			n.del(k)
		}
		sleep(20 * time.Minute)
		has("with 14 again", "32+32")
		for _, k := range n.keys()[1:] {
			n.del(k)
		}
		sleep(20 * time.Minute)
		has("with 1", "16+32")
		must(t, w.check())
		must(t, n.right())
	})
}

// cacheOf returns a node cache of one ENI with addresses 10.0.0.0 and on, in those states.
func cacheOf(states ...eni.State) *ipam.State {
	b := &ipam.State{Settings: ipam.Settings{Families: []eni.Family{eni.IPv4}, CoolDown: 30 * time.Second}, ENIs: []eni.Interface{{ID: "eni-a"}}}
	next := netip.MustParseAddr("10.0.0.0")
	for _, state := range states {
		b.Addresses = append(b.Addresses, eni.Address{Addr: next, State: state, Since: at - time.Second})
		next = next.Next()
	}
	return b
}

func inFours(cached *ipam.State, more ...string) *Agent {
	a := looker(nil, nil)
	a.doubts = noDoubts()
	a.mem.Begun = map[netip.Addr]bool{}
	a.view = view{known: true, limits: eni.Limits{ENIs: 2, V4: 9, V4Block: eni.Block{Bits: 30, Size: 4}},
		enis: []cloud.Interface{{ID: "eni-a", Subnet: "subnet-a"}}, subnets: []cloud.Subnet{{ID: "subnet-a", Free: 100}}}
	for _, line := range cached.Addresses {
		a.view.enis[0].Addresses = append(a.view.enis[0].Addresses, line.Addr)
	}
	for _, addr := range more {
		a.view.enis[0].Addresses = append(a.view.enis[0].Addresses, netip.MustParseAddr(addr))
	}
	return a
}

func addrsOf(cached *ipam.State) []netip.Addr {
	var list []netip.Addr
	for _, line := range cached.Addresses {
		list = append(list, line.Addr)
	}
	return list
}

const (
	free      = eni.Free
	used      = eni.Used
	cooling   = eni.Cooling
	releasing = eni.Releasing
)

func TestAPodThatIsFasterThanADrainKeepsTheBlock(t *testing.T) {
	for _, state := range []eni.State{used, cooling} {
		cached := cacheOf(free, free, releasing, free, free, state, free, free)
		got := inFours(cached).view.drainable(cached, addrsOf(cached), at)
		if want := addrsOf(cached)[:4]; !slices.Equal(want, got) {
			t.Errorf("beside a %s address drained are %v, want %v", state, got, want)
		}
	}
	cached := cacheOf(free, used)
	if got := looker(nil, nil).view.drainable(cached, addrsOf(cached), at); !slices.Equal(addrsOf(cached), got) {
		t.Errorf("without blocks drained are %v", got)
	}
}

func TestTheCloudIsAskedForWholeBlocksOnly(t *testing.T) {
	cached := cacheOf(releasing, releasing, releasing, releasing, releasing, releasing, free, releasing)
	if got := inFours(cached).releasesByENI(cached, at)["eni-a"]; !slices.Equal(addrsOf(cached)[:4], got) {
		t.Errorf("asked back are %v, want the first block", got)
	}
	cached = cacheOf(releasing, releasing, releasing)
	if got := inFours(cached, "10.0.0.3").releasesByENI(cached, at); len(got) > 0 {
		t.Errorf("asked back are %v, and the cloud has one more of the block", got)
	}
	if got := inFours(cached, "10.0.0.4").releasesByENI(cached, at)["eni-a"]; len(got) != 3 {
		t.Errorf("asked back are %v, want 3 single addresses", got)
	}
}

// noting is a Cloud that has nothing but notes.
type noting struct {
	cloud.Cloud
	notes cloud.Notes
}

func (n *noting) Notes() cloud.Notes { return n.notes }

// With a lower limit fewer addresses of an IPv6 block are shown. Those that pods have of the
// others are the node's all the same.
func TestAddressesOfAShownBlockStayWhenTheLimitIsLowered(t *testing.T) {
	cached := cacheOf(used, free, free, used)
	a, notes := inFours(cached), &noting{}
	a.Cloud = notes
	shown := &a.view.enis[0]
	shown.Addresses = shown.Addresses[:2]
	lost := func() int {
		a.noteDoubts(cached)
		a.view.start += time.Hour
		a.noteDoubts(cached)
		return len(a.belief(at).compare(cached, nil, at).lost)
	}
	if n := lost(); n != 2 {
		t.Fatalf("the test shows nothing: %d are lost", n)
	}
	shown.Partial = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/30")}
	if n := lost(); n > 0 || len(a.view.places()) != 4 {
		t.Errorf("%d of the block are lost, %d are there", n, len(a.view.places()))
	}
	shown.Addresses = shown.Addresses[:2]
	notes.notes.Gone = map[string][]netip.Addr{"eni-a": addrsOf(cached)[2:3]}
	if a.noteDoubts(cached); len(a.view.places()) != 3 {
		t.Errorf("with one that was released a moment ago %d are there", len(a.view.places()))
	}
}

// Prefixes were turned off while ENIs had some: those of which nothing is used go as a whole,
// and the account is never asked for a part of one.
func TestBlocksThatAreLeftOfEarlierGoBackWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/23"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: slashes28(30), Subnet: "subnet-a"})
		n.start(-1, false)
		for range 60 {
			_ = n.add()
		}
		sleep(time.Minute)
		if left, has := n.retry(), len(n.attached()[0].Addresses); left > 0 || has < 64 || has%16 != 0 {
			t.Errorf("the test shows nothing: %d pods wait, %d addresses", left, has)
		}
		n.stop()
		n.conf.Pool.Scale.Batch = 5
		n.limits = &eni.Limits{ENIs: 3, V4: 31, V4Block: eni.Block{Bits: 28, Size: 1}}
		n.start(-1, false)
		defer n.stop()
		for i, k := range n.keys() {
			if i%20 > 0 {
				n.del(k)
			}
		}
		sleep(2 * time.Hour)
		nics := n.attached()
		blocks := map[netip.Prefix]int{}
		for _, a := range nics[0].Addresses {
			p, _ := a.Prefix(28)
			blocks[p]++
		}
		if len(nics) != 1 || len(blocks) > 3 {
			t.Errorf("the node has %d ENIs, the first with %d addresses of %d blocks: %+v", len(nics), len(nics[0].Addresses), len(blocks), n.status().Addresses)
		}
		if refused := n.refused.Load(); refused > 0 {
			t.Errorf("%d releases of a part were refused", refused)
		}
		for range 4 {
			must(t, n.add())
		}
		must(t, w.check())
	})
}

func TestARestartTakesTheReleaseOfAPartAsNotBegun(t *testing.T) {
	cached := cacheOf(releasing, releasing, releasing, releasing, releasing, used, releasing, releasing)
	a := inFours(cached)
	a.assumeBegun(cached, 1)
	for i, addr := range addrsOf(cached) {
		if a.mem.Begun[addr] != (i < 4) {
			t.Errorf("%s was begun: %v", addr, a.mem.Begun[addr])
		}
	}
}

func TestABlockOfIPv6TakesNoRoomOfASubnet(t *testing.T) {
	cached := cacheOf()
	a := inFours(cached)
	a.view.limits.V6Block = eni.Block{Bits: 80, Size: 8}
	var block []netip.Addr
	for i := range 8 {
		block = append(block, netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i)))
	}
	a.noteRoomTaken("eni-a", block, 1)
	a.noteRoomTaken("eni-a", addrsOf(cacheOf(free, free, free, free)), 1)
	if got := a.view.subnets[0].Free; got != 100-1-4 {
		t.Errorf("%d addresses are left, want 95", got)
	}
	a.noteRoomTaken("eni-a", block, -1)
	if got := a.view.subnets[0].Free; got != 100-4 {
		t.Errorf("%d addresses are left, want 96", got)
	}
}

func TestAnENIFullOfSingleAddressesHasNoRoom(t *testing.T) {
	for _, tt := range []struct {
		states []eni.State
		want   bool
	}{
		{[]eni.State{free}, false},
		{[]eni.State{free, free}, true},
		{[]eni.State{free, free, free, free, used}, true},
		{[]eni.State{free, free, free, free}, false},
	} {
		a := inFours(cacheOf())
		a.cached = cacheOf(tt.states...)
		a.view.limits.ENIs = 1
		s := pool.Snapshot{Families: []eni.Family{eni.IPv4}, Limits: a.view.limits, ENIs: []pool.ENI{{ID: "eni-a", Subnet: "subnet-a"}}}
		why := a.reasons(at).supply(s, []int{len(tt.states)})
		if full := len(why) > 0; full != tt.want || full && why[0].Kind.Reason() != health.ENILimitReached {
			t.Errorf("with %v the node has no room: %v", tt.states, why)
		}
	}
}

// pods keep ending and starting, each after ten minutes on average.
func (n *testNode) churn(t *testing.T, r *rand.Rand, ends map[eni.Key]time.Duration, load int, last time.Duration) {
	t.Helper()
	for until := n.w.now() + last; n.w.now() < until; sleep(5 * time.Second) {
		for k, end := range ends {
			if end <= n.w.now() {
				n.del(k)
				delete(ends, k)
			}
		}
		for waiting := n.retry(); len(n.keys())+waiting < load; {
			if n.add() != nil {
				waiting++
			}
		}
		for _, k := range n.keys() {
			if _, known := ends[k]; !known {
				ends[k] = n.w.now() + time.Duration(r.ExpFloat64()*float64(10*time.Minute))
			}
		}
	}
}

// A node whose load falls gives its /28s back: new pods fill up those that are needed,
// and the others empty as their pods end.
func TestAShrinkingNodeGivesItsPrefixesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/23"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: slashes28(30), Subnet: "subnet-a"})
		n.start(-1, false)
		defer n.stop()
		sleep(10 * time.Second)
		r, ends := rand.New(rand.NewPCG(1, 2)), map[eni.Key]time.Duration{}
		carried := func() int {
			sum := 0
			for _, nic := range n.attached() {
				sum += len(nic.Addresses)
			}
			return sum
		}
		n.churn(t, r, ends, 100, time.Hour)
		if got := carried(); got < 112 {
			t.Errorf("100 pods have %d addresses", got)
		}
		n.churn(t, r, ends, 20, 100*time.Minute)
		if got := len(n.keys()); got != 20 {
			t.Errorf("%d pods are left", got)
		}
		// Two /28s are wanted for them; a third may be.
		if got := carried(); got > 3*16 {
			t.Errorf("20 pods keep %d addresses: %+v", got, n.status())
		}
		must(t, w.check())
	})
}
