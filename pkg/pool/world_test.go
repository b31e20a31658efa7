package pool

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

var (
	v4   = []eni.Family{eni.IPv4}
	both = []eni.Family{eni.IPv4, eni.IPv6}
)

// lines makes n addresses of the family in the state, with numbers from first on.
func lines(f eni.Family, state eni.State, first, n int) []Address {
	list := make([]Address, n)
	for i := range list {
		form := "10.0.%d.%d"
		if f == eni.IPv6 {
			form = "2001:db8:1::%x%02x"
		}
		list[i] = Address{Address: eni.Address{Addr: netip.MustParseAddr(fmt.Sprintf(form, (first+i)/256, (first+i)%256)), State: state}}
		if state == eni.Used {
			list[i].Owner = &eni.Owner{Key: eni.Key{Container: fmt.Sprint("pod-", first+i)}}
		}
	}
	return list
}

// card is an ENI in subnet-a with that many free and used slots of the families.
// Its number is its place and device index, and picks its addresses.
func card(number int, families []eni.Family, free, used int) ENI {
	e := ENI{ID: fmt.Sprintf("eni-%c", 'a'+number), Index: number, Subnet: "subnet-a"}
	for _, f := range families {
		e.Addresses = append(e.Addresses, lines(f, eni.Used, 256*number, used)...)
		e.Addresses = append(e.Addresses, lines(f, eni.Free, 256*number+used, free)...)
	}
	return e
}

// node is a node with those ENIs, of up to 4 with 16 slots each, and one subnet
// with a lot of room.
func node(families []eni.Family, enis ...ENI) Snapshot {
	return Snapshot{Families: families, Limits: eni.Limits{ENIs: 4, V4: 17, V6: 17}, ENIs: enis,
		Subnets: []Subnet{{ID: "subnet-a", Free: 200, New: true}}}
}

// anyConfig draws what a node may be told.
func anyConfig(t *rapid.T) Config {
	c := Config{Mode: Mode(rapid.IntRange(0, 2).Draw(t, "mode")), FirstENI: rapid.IntRange(0, 1).Draw(t, "first"),
		MaxAllocate: rapid.SampledFrom([]int{0, 0, 7, 20, 33}).Draw(t, "most")}
	if seldom(t, "own limits") {
		c.MaxAllocateENI, c.MaxIPsPerENI = rapid.IntRange(0, 4).Draw(t, "most ENIs"), rapid.SampledFrom([]int{0, 3, 6}).Draw(t, "most addresses")
	}
	return inMode(t, c, c.Mode)
}

// inMode draws the settings of the mode.
func inMode(t *rapid.T, c Config, m Mode) Config {
	c.Mode, c.MaxAboveWatermark = m, 0
	switch m {
	case Burstable:
		c.Multiple = rapid.IntRange(1, 3).Draw(t, "multiple")
		c.Partial, c.ReturnENIs = rapid.Bool().Draw(t, "partial"), rapid.Bool().Draw(t, "return")
	case BestEffort:
		c.MinAllocate, c.PreAllocate = rapid.IntRange(0, 12).Draw(t, "min"), rapid.IntRange(0, 6).Draw(t, "pre")
		c.MaxAboveWatermark = rapid.IntRange(0, 8).Draw(t, "above")
	}
	return c
}

// anyFamilies draws what pods get.
func anyFamilies(t *rapid.T) []eni.Family {
	return rapid.SampledFrom([][]eni.Family{v4, {eni.IPv6}, both, {eni.IPv6, eni.IPv4}}).Draw(t, "families")
}

// anySnapshot draws a node in any state, however odd: calls half done, batches that
// came in part, limits that shrank.
func anySnapshot(t *rapid.T) Snapshot {
	s := Snapshot{Families: anyFamilies(t), Unmanaged: rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "unmanaged"),
		MaxPods: rapid.SampledFrom([]int{0, 0, 25}).Draw(t, "pods"), Cooling: rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "cooling")}
	s.Limits = anyBlocks(t, eni.Limits{ENIs: rapid.IntRange(0, 6).Draw(t, "enis"), V4: rapid.IntRange(0, 9).Draw(t, "v4"), V6: rapid.IntRange(3, 9).Draw(t, "v6"),
		NoPrimary: seldom(t, "no primary")})
	for _, id := range []string{"subnet-a", "subnet-b", "subnet-c"}[:rapid.IntRange(0, 3).Draw(t, "subnets")] {
		s.Subnets = append(s.Subnets, Subnet{ID: id, Free: rapid.SampledFrom([]int{0, 1, 3, 9, 30, 200}).Draw(t, "free"),
			New: often(t, "new"), Blocked: anyRefusal(t, "blocked "+id), NoNew: anyRefusal(t, "no new "+id)})
		if n := &s.Subnets[len(s.Subnets)-1]; seldom(t, "spared") {
			n.Spared, n.Keep = true, rapid.IntRange(0, 9).Draw(t, "keep")
		}
	}
	s.Needed = rapid.SampledFrom([]int{0, 1, 5, 12}).Draw(t, "needed")
	order := rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "order")
	for _, number := range order[:rapid.IntRange(0, 4).Draw(t, "cards")] {
		s.ENIs = append(s.ENIs, anyENI(t, s, number))
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "pending") {
		s.Pending = append(s.Pending, Pending{Subnet: "subnet-a", Slots: rapid.IntRange(1, 5).Draw(t, "slots")})
	}
	return s
}

func anyENI(t *rapid.T, s Snapshot, number int) ENI {
	e := card(number, nil, 0, 0)
	e.Subnet = rapid.SampledFrom([]string{"subnet-a", "subnet-a", "subnet-b", "subnet-c"}).Draw(t, "in")
	e.NoMore, e.Stays = anyRefusal(t, "no more "+e.ID), seldom(t, "stays")
	e.Busy, e.Leaving, e.Keep = seldom(t, "busy"), seldom(t, "leaving"), seldom(t, "keep")
	idle := rapid.Bool().Draw(t, "idle")
	even := often(t, "even")
	n := 0
	for k, f := range s.Families {
		if k == 0 || !even {
			n = rapid.IntRange(0, max(0, s.Limits.PerENI(f)+1)).Draw(t, "addresses")
		}
		for i := range n {
			e.Addresses = append(e.Addresses, anyAddress(t, f, 256*number+i, idle))
		}
		if size := s.Limits.Block(f).Size; size > 1 && often(t, "alike") {
			e.Addresses = alike(e.Addresses, s.Limits.Block(f))
		}
		if room := s.Limits.PerENI(f) - n; room > 0 && seldom(t, "coming") {
			e.Coming = append(e.Coming, Coming{Family: f, Count: rapid.IntRange(1, room).Draw(t, "count")})
		}
	}
	return e
}

func anyAddress(t *rapid.T, f eni.Family, number int, idle bool) Address {
	states := []eni.State{eni.Free, eni.Free, eni.Used, eni.Used, eni.Used, eni.Cooling, eni.Releasing, eni.Held}
	if idle {
		states = []eni.State{eni.Free, eni.Free, eni.Free, eni.Free, eni.Releasing}
	}
	a := lines(f, rapid.SampledFrom(states).Draw(t, "state"), number, 1)[0]
	a.Lost = a.State == eni.Used && seldom(t, "lost")
	a.Committed = a.State == eni.Releasing && rapid.Bool().Draw(t, "committed")
	return a
}

// anyRefusal draws what the cloud may have refused, nothing most of the time: its words are its own.
func anyRefusal(t *rapid.T, what string) (c Cause) {
	if seldom(t, what) {
		c = Cause{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Next: time.Duration(rapid.IntRange(0, 9).Draw(t, "next")), Words: "refused: " + what}
	}
	return c
}

func seldom(t *rapid.T, what string) bool { return rapid.IntRange(0, 7).Draw(t, what) == 7 }
func often(t *rapid.T, what string) bool  { return rapid.IntRange(0, 3).Draw(t, what) > 0 }

// settle ends what was on its way: calls come back, what was to go has gone, what
// was lost is no pod's any more, and others have gone.
func settle(s Snapshot) Snapshot {
	w := applied(s, nil)
	made := &world{Snapshot: &w, taken: map[netip.Addr]bool{}, made: map[eni.Family]int{}}
	for _, e := range w.ENIs {
		for _, a := range e.Addresses {
			made.taken[a.Addr] = true
		}
	}
	w.ENIs = slices.DeleteFunc(w.ENIs, func(e ENI) bool { return e.Leaving })
	for i := range w.ENIs {
		e := &w.ENIs[i]
		e.Addresses = slices.DeleteFunc(e.Addresses, func(a Address) bool { return a.State == eni.Releasing || a.Lost || a.State == eni.Held })
		for _, c := range e.Coming {
			made.add(e, c.Family, c.Count)
			take(w.Subnets, e.Subnet, takenOfSubnet(w.Limits, c.Family, c.Count))
		}
		e.Coming, e.Busy, e.NoMore, e.Stays = nil, false, Cause{}, false
	}
	for _, p := range w.Pending {
		made.create(Step{Subnet: p.Subnet, V4: p.Slots, V6: p.Slots}, map[eni.Family]int{})
		take(w.Subnets, p.Subnet, p.Slots+1)
	}
	w.Pending = nil
	for i := range w.Subnets {
		w.Subnets[i].Blocked, w.Subnets[i].NoNew = Cause{}, Cause{}
	}
	return w
}

func take(list []Subnet, id string, n int) {
	for i := range list {
		if list[i].ID == id {
			list[i].Free -= n
		}
	}
}
