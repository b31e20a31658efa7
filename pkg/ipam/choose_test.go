package ipam

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// blocksOf is a node state of one ENI with so many /28s, all free.
func blocksOf(count int) *State {
	e := nic(0)
	e.V4.Primary, e.V4.Gateway = netip.MustParsePrefix("10.0.100.2/16"), netip.MustParseAddr("10.0.100.1")
	s := &State{Settings: Settings{MarkMask: DefaultMarkMask, CoolDown: sec(30), Families: []eni.Family{eni.IPv4}, V4Block: 28}, ENIs: []eni.Interface{e}}
	for b := range count {
		for i := range 16 {
			s.Addresses = append(s.Addresses, eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, byte(b), byte(16 + i)}), State: eni.Free})
		}
	}
	return s
}

// idleBlocks counts the blocks all of which is free at now.
func (s *State) idleBlocks(now time.Duration) int {
	busy, all := map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	for i := range s.Addresses {
		a := &s.Addresses[i]
		all[s.blockOf(a.Addr)] = true
		if _, free := s.FreeSince(a, now); !free {
			busy[s.blockOf(a.Addr)] = true
		}
	}
	return len(all) - len(busy)
}

// churn is a node whose pods live for ten minutes on average; who ends is replaced as
// long as there are fewer than load.
type churn struct {
	*State
	r    *rand.Rand
	now  time.Duration
	ends map[string]time.Duration
	made int
}

func (c *churn) run(t testing.TB, load int, until time.Duration) {
	t.Helper()
	for ; c.now < until; c.now += time.Second {
		for name, end := range c.ends {
			if end <= c.now {
				c.Free(key(name), c.now)
				delete(c.ends, name)
			}
		}
		for len(c.ends) < load {
			c.made++
			name := fmt.Sprint("pod-", c.made)
			if _, err := c.AssignPod(owner(name), "", c.now); err != nil {
				break // all that is not used cools
			}
			c.ends[name] = c.now + time.Duration(c.r.ExpFloat64()*float64(10*time.Minute))
		}
	}
}

// A node that shrinks has to give prefixes back: pods must not go on using a bit of each.
func TestBlocksAreIdleTenPodLivesAfterTheLoadHasFallen(t *testing.T) {
	const blocks, seeds = 9, 20
	for _, tt := range []struct{ before, after int }{{120, 20}, {120, 40}, {60, 10}} {
		t.Run(fmt.Sprintf("%d to %d pods", tt.before, tt.after), func(t *testing.T) {
			ideal, sum := blocks-(tt.after+15)/16, 0
			for seed := range uint64(seeds) {
				c := &churn{State: blocksOf(blocks), r: rand.New(rand.NewPCG(seed, 1)), ends: map[string]time.Duration{}}
				c.run(t, tt.before, time.Hour)
				c.run(t, tt.after, time.Hour+100*time.Minute)
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
				sum += c.idleBlocks(c.now)
			}
			mean := float64(sum) / seeds
			t.Logf("%.1f blocks of %d are idle, %d could be", mean, blocks, ideal)
			if mean < float64(ideal-1) {
				t.Errorf("%.1f blocks are idle, want %d", mean, ideal-1)
			}
		})
	}
}

// The choice is the one that its description makes, whoever's addresses are in the node state.
func TestTheFullestBlockIsChosenAndInItTheAddressFreeTheLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now = 1000
		s := blocksOf(rapid.IntRange(1, 4).Draw(t, "blocks"))
		s.Settings.V4Block = rapid.SampledFrom([]int{0, 28, 30}).Draw(t, "bits")
		states := rapid.SampledFrom([]eni.State{eni.Free, eni.Used, eni.Used, eni.Cooling, eni.Releasing, eni.Held})
		for i := range s.Addresses {
			a := &s.Addresses[i]
			a.State, a.Since = states.Draw(t, "state"), sec(now-rapid.IntRange(0, 60).Draw(t, "age"))
			if a.State == eni.Used {
				o := owner(fmt.Sprint("pod-", i))
				a.Owner = &o
			}
		}
		idle := map[netip.Prefix]int{}
		for _, a := range s.Addresses {
			if a.State == eni.Free || a.State == eni.Cooling {
				idle[s.blockOf(a.Addr)]++
			}
		}
		var want *eni.Address
		for i := range s.Addresses {
			a := &s.Addresses[i]
			since, free := s.FreeSince(a, sec(now))
			if !free {
				continue
			}
			if want == nil {
				want = a
				continue
			}
			best, _ := s.FreeSince(want, sec(now))
			if n, m := idle[s.blockOf(a.Addr)], idle[s.blockOf(want.Addr)]; n < m || s.blockOf(a.Addr) == s.blockOf(want.Addr) && since < best {
				want = a
			}
		}
		got := s.chooseOnENI(0, nil, sec(now))
		if want == nil && got != nil || want != nil && (len(got) != 1 || s.Addresses[got[0]].Addr != want.Addr) {
			t.Fatalf("chose %v of\n%s, want %v", got, show(s.Addresses), want)
		}
		// An ADD does not read what others use.
		less := *s
		less.Addresses = slices.DeleteFunc(slices.Clone(s.Addresses), func(a eni.Address) bool { return a.State == eni.Used })
		if at := less.chooseOnENI(0, nil, sec(now)); want != nil && less.Addresses[at[0]].Addr != want.Addr {
			t.Fatalf("without the used ones it chose %v, want %v", at, want)
		}
	})
}

func TestEachFamilyHasItsOwnBlocks(t *testing.T) {
	s := nodeState(t, 1, `
		10.0.0.16 0 free 1
		2001:db8::1:10 0 free 1
		10.0.0.17 0 free 2
		2001:db8::1:11 0 free 5
		10.0.0.32 0 free 3
		2001:db8::2:10 0 free 6
		10.0.0.33 0 used 3 db
		2001:db8::2:11 0 used 6 web`, eni.IPv4, eni.IPv6)
	s.Settings.V4Block, s.Settings.V6Block = 28, 112
	l, err := s.AssignPod(owner("late"), "", sec(10))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(l.Addresses[0].Addr, " ", l.Addresses[1].Addr); got != "10.0.0.32 2001:db8::2:10" {
		t.Error(got)
	}
}

// BenchmarkChoose is the choice among 4,096 addresses in blocks, a thousand of them free.
func BenchmarkChoose(b *testing.B) {
	s := blocksOf(250)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range s.Addresses {
		if o := owner("web"); r.IntN(4) > 0 {
			s.Addresses[i].State, s.Addresses[i].Owner = eni.Used, &o
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if s.chooseOnENI(0, nil, sec(100)) == nil {
			b.Fatal("none")
		}
	}
}
