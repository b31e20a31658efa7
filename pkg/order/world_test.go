package order

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"pgregory.net/rapid"
)

var both = []eni.Family{eni.IPv4, eni.IPv6}

func seldom(t *rapid.T, what string) bool { return rapid.IntRange(0, 7).Draw(t, what) == 7 }
func often(t *rapid.T, what string) bool  { return rapid.IntRange(0, 3).Draw(t, what) > 0 }

func anyFamilies(t *rapid.T) []eni.Family {
	return rapid.SampledFrom([][]eni.Family{{eni.IPv4}, {eni.IPv6}, both, {eni.IPv6, eni.IPv4}}).Draw(t, "families")
}

// anyConfig draws what a node may be told.
func anyConfig(t *rapid.T) pool.Config {
	c := pool.Config{Mode: pool.Mode(rapid.IntRange(0, 2).Draw(t, "mode")), FirstENI: rapid.IntRange(0, 1).Draw(t, "first"),
		MaxAllocate: rapid.SampledFrom([]int{0, 0, 7, 20, 33}).Draw(t, "most")}
	if seldom(t, "own limits") {
		c.MaxAllocateENI, c.MaxIPsPerENI = rapid.IntRange(0, 4).Draw(t, "most ENIs"), rapid.SampledFrom([]int{0, 3, 6}).Draw(t, "most addresses")
		c.PreAllocateENI = rapid.IntRange(0, 3).Draw(t, "ahead")
	}
	switch c.Mode {
	case pool.Burstable:
		c.Multiple = rapid.IntRange(1, 3).Draw(t, "multiple")
		c.Partial, c.ReturnENIs = rapid.Bool().Draw(t, "partial"), rapid.Bool().Draw(t, "return")
	case pool.BestEffort:
		c.MinAllocate, c.PreAllocate = rapid.IntRange(0, 12).Draw(t, "min"), rapid.IntRange(0, 6).Draw(t, "pre")
		c.MaxAboveWatermark = rapid.IntRange(0, 8).Draw(t, "above")
	}
	return c
}

// anyLimits draws an instance, some of which have blocks.
func anyLimits(t *rapid.T) eni.Limits {
	l := eni.Limits{ENIs: rapid.IntRange(0, 6).Draw(t, "enis"), V4: rapid.IntRange(0, 9).Draw(t, "v4"), V6: rapid.IntRange(3, 9).Draw(t, "v6"),
		NoPrimary: seldom(t, "no primary")}
	if !rapid.Bool().Draw(t, "blocks") {
		return l
	}
	if often(t, "v4 blocks") {
		l.V4Block = eni.Block{Bits: 30, Size: 4}
		l.V4 = rapid.IntRange(0, 6).Draw(t, "v4 places")*4 + rapid.IntRange(1, 2).Draw(t, "v4 rest")
	}
	l.V6Block = rapid.SampledFrom([]eni.Block{{}, {Bits: 126, Size: 4}, {Bits: 125, Size: 8}, {Bits: 120, Size: 20}}).Draw(t, "v6 blocks")
	if size := l.V6Block.Size; size > 0 {
		l.V6 = rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "v6 places")*size + 1
	}
	return l
}

// anySnapshot draws a node in any state, however odd: calls half done, batches that came in part, limits that shrank.
func anySnapshot(t *rapid.T) pool.Snapshot {
	s := pool.Snapshot{Families: anyFamilies(t), Limits: anyLimits(t), Unmanaged: rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "unmanaged"),
		MaxPods: rapid.SampledFrom([]int{0, 0, 25}).Draw(t, "pods"), Cooling: rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "cooling")}
	for _, id := range []string{"subnet-a", "subnet-b", "subnet-c"}[:rapid.IntRange(0, 3).Draw(t, "subnets")] {
		s.Subnets = append(s.Subnets, pool.Subnet{ID: id, Free: rapid.SampledFrom([]int{0, 1, 3, 9, 30, 200}).Draw(t, "free"),
			New: often(t, "new"), Blocked: anyRefusal(t, "blocked "+id), NoNew: anyRefusal(t, "no new "+id)})
	}
	s.Needed = rapid.SampledFrom([]int{0, 1, 5, 12}).Draw(t, "needed")
	for _, number := range rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "order")[:rapid.IntRange(0, 4).Draw(t, "cards")] {
		s.ENIs = append(s.ENIs, anyENI(t, s, number))
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "pending") {
		s.Pending = append(s.Pending, pool.Pending{Subnet: "subnet-a", Slots: rapid.IntRange(1, 5).Draw(t, "slots")})
	}
	return s
}

func anyENI(t *rapid.T, s pool.Snapshot, number int) pool.ENI {
	e := pool.ENI{ID: fmt.Sprintf("eni-%c", 'a'+number), Index: number,
		Subnet: rapid.SampledFrom([]string{"subnet-a", "subnet-a", "subnet-b", "subnet-c"}).Draw(t, "in")}
	e.NoMore, e.Stays = anyRefusal(t, "no more "+e.ID), seldom(t, "stays")
	e.Busy, e.Leaving, e.Keep, e.NoLink = seldom(t, "busy"), seldom(t, "leaving"), seldom(t, "keep"), seldom(t, "no link")
	idle, even, n := rapid.Bool().Draw(t, "idle"), often(t, "even"), 0
	for k, f := range s.Families {
		if k == 0 || !even {
			n = rapid.IntRange(0, max(0, s.Limits.PerENI(f)+1)).Draw(t, "addresses")
		}
		alike := s.Limits.Block(f).Size > 1 && often(t, "alike")
		for i := range n {
			a := anyAddress(t, f, 256*number+i, idle)
			if size := s.Limits.Block(f).Size; alike && i%size > 0 && a.State != eni.Used {
				if before := e.Addresses[len(e.Addresses)-1]; before.State != eni.Used {
					a.State, a.Committed = before.State, before.Committed
				}
			}
			e.Addresses = append(e.Addresses, a)
		}
		if room := s.Limits.PerENI(f) - n; room > 0 && seldom(t, "coming") {
			e.Coming = append(e.Coming, pool.Coming{Family: f, Count: rapid.IntRange(1, room).Draw(t, "count")})
		}
	}
	return e
}

func anyAddress(t *rapid.T, f eni.Family, number int, idle bool) pool.Address {
	states := []eni.State{eni.Free, eni.Free, eni.Used, eni.Used, eni.Used, eni.Cooling, eni.Releasing, eni.Held}
	if idle {
		states = []eni.State{eni.Free, eni.Free, eni.Free, eni.Free, eni.Releasing}
	}
	a := pool.Address{Address: eni.Address{Addr: numbered(f, number), State: rapid.SampledFrom(states).Draw(t, "state")}}
	a.Lost = a.State == eni.Used && seldom(t, "lost")
	a.Committed = a.State == eni.Releasing && rapid.Bool().Draw(t, "committed")
	return a
}

// numbered returns the address of a family with a number: 10.0.0.0 and 2001:db8:1:: are the first.
func numbered(f eni.Family, n int) netip.Addr {
	if f == eni.IPv6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8:1::%x%02x", n/256, n%256))
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(n / 256), byte(n % 256)})
}

// anyRefusal draws what the cloud may have refused, nothing most of the time.
func anyRefusal(t *rapid.T, what string) (c pool.Cause) {
	if seldom(t, what) {
		c = pool.Cause{Kind: rapid.SampledFrom(pool.Kinds()).Draw(t, "kind"), Next: time.Duration(rapid.IntRange(0, 9).Draw(t, "next")), Words: "refused: " + what}
	}
	return c
}

// host returns addresses as host prefixes.
func host(addrs ...netip.Addr) (list []netip.Prefix) {
	for _, a := range addrs {
		list = append(list, netip.PrefixFrom(a, a.BitLen()))
	}
	return list
}

func contains(steps []pool.Step, do pool.Action, id string) bool {
	return slices.ContainsFunc(steps, func(s pool.Step) bool { return s.Do == do && s.ENI == id })
}
