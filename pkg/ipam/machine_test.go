package ipam

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// machine makes random moves on a node state and knows, from its own plain notes, what
// each of them may do.
type machine struct {
	s     *State
	now   time.Duration
	free  map[netip.Addr]time.Duration // since when each address that is nobody's could be had
	owns  map[netip.Addr]eni.Key
	held  map[netip.Addr]string // what holds each address that others have
	kept  map[netip.Addr]keeping
	names int // owners so far
}

const poolENIs = 4

// TestNoRowOfMovesBreaksTheState is the contract of the package.
func TestNoRowOfMovesBreaksTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{now: sec(1000)}
		m.begin(t)
		t.Repeat(map[string]func(*rapid.T){
			"":           m.check,
			"assign":     m.assign,
			"undo":       m.assignAndUndo,
			"release":    m.release,
			"release if": m.releaseIf,
			"merge":      m.merge,
			"lose":       m.loseAndRecover,
			"hold":       m.hold,
			"unhold":     m.unhold,
			"reserve":    m.reserve,
			"unreserve":  m.unreserve,
			"claim":      m.claim,
			"undo claim": m.claimAndUndo,
			"wait": func(t *rapid.T) {
				m.now += time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond
			},
		})
	})
}

func (m *machine) begin(t *rapid.T) {
	families := rapid.SampledFrom([][]eni.Family{{eni.IPv4}, {eni.IPv6}, {eni.IPv4, eni.IPv6}, {eni.IPv6, eni.IPv4}}).Draw(t, "families")
	settings := Settings{MarkMask: DefaultMarkMask, Families: families,
		Gated:    rapid.SampledFrom([][]string{nil, {"db"}}).Draw(t, "gated"),
		CoolDown: time.Duration(rapid.SampledFrom([]int{0, 1, 30}).Draw(t, "cool-down")) * time.Second}
	s, err := Merge(nil, m.inventory(t, settings), nil, m.now)
	if err != nil {
		t.Fatal(err)
	}
	m.s = s
	m.note()
}

// inventory is what a node could have: any ENIs in any order with any addresses.
func (m *machine) inventory(t *rapid.T, settings Settings) State {
	want := State{Settings: settings}
	order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
	count := rapid.IntRange(1, poolENIs).Draw(t, "enis")
	taken := map[int]bool{}
	for i, n := range order[:count] {
		e := nic(n)
		e.Index = i
		want.ENIs = append(want.ENIs, e)
		// Mostly an ENI's own addresses, at times one that moved.
		for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(n*4, n*4+4), 0, 5, rapid.ID[int]).Draw(t, "addresses") {
			if k %= 4 * poolENIs; taken[k] {
				continue
			}
			taken[k] = true
			// Bit 0 is IPv4, bit 1 IPv6: some addresses have no partner.
			have := rapid.SampledFrom([]int{3, 3, 1, 2}).Draw(t, "have")
			for bit, form := range []string{"10.0.0.1%02d", "2001:db8::1%02d"} {
				if have>>bit&1 == 1 {
					want.Addresses = append(want.Addresses, eni.Address{Addr: netip.MustParseAddr(fmt.Sprintf(form, k)), ENI: i})
				}
			}
		}
	}
	return want
}

// note begins new notes: what is nobody's is new.
func (m *machine) note() {
	m.free, m.owns, m.held = map[netip.Addr]time.Duration{}, map[netip.Addr]eni.Key{}, map[netip.Addr]string{}
	m.kept = map[netip.Addr]keeping{}
	for _, a := range m.s.Addresses {
		if a.Reservation != nil {
			m.kept[a.Addr] = keeping{*a.Reservation, a.Since}
		}
		switch a.State {
		case eni.Reserved:
		case eni.Used:
			m.owns[a.Addr] = a.Owner.Key
		case eni.Held:
			m.held[a.Addr] = a.HeldBy
		default:
			m.free[a.Addr] = m.now
		}
	}
}

// some draws addresses of the node state, and one that it does not have.
func (m *machine) some(t *rapid.T) []netip.Addr {
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	for _, a := range m.s.Addresses {
		if rapid.IntRange(0, 2).Draw(t, "pick") == 0 {
			addrs = append(addrs, a.Addr)
		}
	}
	return addrs
}

// hold lets others take addresses: those of pods stay the pods'.
func (m *machine) hold(t *rapid.T) {
	causes := map[netip.Addr]string{}
	want := map[netip.Addr]bool{}
	for _, a := range m.some(t) {
		causes[a] = rapid.SampledFrom([]string{"route", "rule", ""}).Draw(t, "cause")
		if _, nobodys := m.free[a]; nobodys {
			want[a] = true
			delete(m.free, a)
			m.held[a] = causes[a]
		} else if _, held := m.held[a]; held {
			m.held[a] = causes[a]
		}
	}
	m.same(t, "held", want, m.s.MarkHeld(causes, m.now))
}

func (m *machine) unhold(t *rapid.T) {
	addrs, want := m.some(t), map[netip.Addr]bool{}
	for _, a := range addrs {
		if _, held := m.held[a]; held {
			want[a] = true
			delete(m.held, a)
			m.free[a] = m.now + m.s.Settings.CoolDown
		}
	}
	m.same(t, "let go", want, m.s.CoolHeld(addrs, m.now))
}

func (m *machine) same(t *rapid.T, what string, want map[netip.Addr]bool, got []netip.Addr) {
	set := map[netip.Addr]bool{}
	for _, a := range got {
		set[a] = true
	}
	if !maps.Equal(want, set) || len(set) != len(got) {
		t.Fatalf("%s %v, want %v", what, got, want)
	}
}

// newOwner is a fresh one mostly, at times one that may hold addresses.
func (m *machine) newOwner(t *rapid.T) eni.Owner {
	if m.names > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
		return owner(fmt.Sprintf("pod-%d", rapid.IntRange(0, m.names-1).Draw(t, "pod")))
	}
	m.names++
	return owner(fmt.Sprintf("pod-%d", m.names-1))
}

func (m *machine) assign(t *rapid.T) { m.doAssign(t) }

func (m *machine) doAssign(t *rapid.T) (Lease, bool) {
	o := m.newOwner(t)
	device := rapid.SampledFrom([]string{"", "", "", "eth1", "eth2", "nowhere"}).Draw(t, "device")
	holds := slices.Contains(slices.Collect(maps.Values(m.owns)), o.Key)
	want := m.expect(device)
	l, err := m.s.AssignPod(o, device, m.now)
	var exhausted *Exhausted
	switch {
	case holds && errors.Is(err, ErrDuplicate):
		return Lease{}, false
	case holds:
		t.Fatalf("%s holds an address and got %v, %v", o.Pod, l, err)
	case want == nil && errors.As(err, &exhausted):
		return Lease{}, false
	case want == nil:
		t.Fatalf("nothing is free on %q, got %v, %v", device, l, err)
	case err != nil:
		t.Fatalf("want %v, got %v", want, err)
	}
	var got []netip.Addr
	for _, a := range l.Addresses {
		got = append(got, a.Addr)
		m.owns[a.Addr] = o.Key
		delete(m.free, a.Addr)
	}
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Fatal(diff)
	}
	return l, true
}

// expect is the rule in plain words: the first ENI in order that has an address
// of every family that may be had now, and of these the one that could be had
// the longest, the one that stands first where two could.
func (m *machine) expect(device string) []netip.Addr {
	for _, e := range m.s.ENIs {
		if device != "" && device != e.Device {
			continue
		}
		var got []netip.Addr
		for _, f := range m.s.Settings.Families {
			best, since := netip.Addr{}, time.Duration(0)
			for _, a := range m.s.Addresses {
				at, nobodys := m.free[a.Addr]
				if nobodys && a.ENI == e.Index && a.Family() == f && at <= m.now && (!best.IsValid() || at < since) {
					best, since = a.Addr, at
				}
			}
			if best.IsValid() {
				got = append(got, best)
			}
		}
		if len(got) == len(m.s.Settings.Families) {
			return got
		}
	}
	return nil
}

func (m *machine) assignAndUndo(t *rapid.T) {
	before, owns, free := show(m.s.Addresses), maps.Clone(m.owns), maps.Clone(m.free)
	exact := slices.Clone(m.s.Addresses)
	l, ok := m.doAssign(t)
	if !ok {
		return
	}
	m.now += time.Duration(rapid.IntRange(0, 60).Draw(t, "s")) * time.Second
	m.s.UndoLease(l)
	m.owns, m.free = owns, free
	if diff := cmp.Diff(before, show(m.s.Addresses)); diff != "" || !slices.Equal(exact, m.s.Addresses) {
		t.Fatalf("undo left: %s", diff)
	}
}

func (m *machine) release(t *rapid.T) {
	if m.names == 0 {
		t.Skip("nobody was ever there")
	}
	k := key(fmt.Sprintf("pod-%d", rapid.IntRange(0, m.names-1).Draw(t, "pod")))
	m.noteReleased(t, func(o eni.Key) bool { return o == k }, m.s.Free(k, m.now))
}

func (m *machine) releaseIf(t *rapid.T) {
	odd := rapid.SampledFrom([]bool{false, true}).Draw(t, "odd")
	gone := func(k eni.Key) bool { return len(k.Container)%2 == 1 == odd }
	m.noteReleased(t, gone, m.s.FreeIf(func(a eni.Address) bool { return gone(a.Owner.Key) }, m.now))
}

func (m *machine) noteReleased(t *rapid.T, gone func(eni.Key) bool, released []eni.Address) {
	got := map[netip.Addr]eni.Key{}
	for _, a := range released {
		got[a.Addr] = a.Owner.Key
	}
	want := map[netip.Addr]eni.Key{}
	for a, k := range m.owns {
		if gone(k) {
			want[a] = k
			delete(m.owns, a)
			if r, kept := m.kept[a]; kept {
				m.kept[a] = keeping{r.Reservation, m.now}
				continue
			}
			m.free[a] = m.now + m.s.Settings.CoolDown
		}
	}
	if !maps.Equal(want, got) {
		t.Fatalf("released %v, want %v", got, want)
	}
}

// merge changes the inventory: it refuses, or every used address stays as it is
// on an ENI with the index it had.
func (m *machine) merge(t *rapid.T) {
	old, before := m.s, show(m.s.Addresses)
	next, err := Merge(old, m.inventory(t, old.Settings), nil, m.now)
	if show(old.Addresses) != before {
		t.Fatal("Merge changed the old state")
	}
	if err != nil {
		return
	}
	for _, e := range next.ENIs {
		for _, was := range old.ENIs {
			if e.ID == was.ID && e.Index != was.Index {
				t.Fatalf("%s went from index %d to %d", e.ID, was.Index, e.Index)
			}
		}
	}
	if diff := cmp.Diff(sorted(old.Used()), sorted(next.Used())); diff != "" {
		t.Fatalf("used addresses: %s", diff)
	}
	m.reservationsStay(t, old, next)
	m.s = next
	was := m.free
	m.note()
	for _, a := range old.Addresses {
		// What stays where it is keeps its age, and what cools goes on cooling
		// wherever it is; anything else is as young as now.
		stays := slices.ContainsFunc(next.Addresses, func(n eni.Address) bool { return n.Addr == a.Addr && n.ENI == a.ENI })
		if _, there := m.free[a.Addr]; there && (stays || a.State == eni.Cooling) {
			m.free[a.Addr] = was[a.Addr]
		}
	}
}

// loseAndRecover loses the node state and rebuilds it from the kernel: the owners are
// the same, all else is new.
func (m *machine) loseAndRecover(t *rapid.T) {
	recovered := map[netip.Addr]eni.Owner{}
	for _, a := range m.s.Used() {
		recovered[a.Addr] = *a.Owner
	}
	want := State{Settings: m.s.Settings, ENIs: slices.Clone(m.s.ENIs), Addresses: slices.Clone(m.s.Addresses)}
	for i := range want.Addresses {
		want.Addresses[i] = eni.Address{Addr: want.Addresses[i].Addr, ENI: want.Addresses[i].ENI}
	}
	old := &State{Settings: m.s.Settings, ENIs: m.s.ENIs} // what is left when every address line is damaged
	next, err := Merge(old, want, recovered, m.now)
	if err != nil {
		t.Fatal(err)
	}
	names := func(s *State) string {
		text := ""
		for _, a := range s.Used() {
			text += fmt.Sprintf("%s %d %s\n", a.Addr, a.ENI, a.Owner.Key)
		}
		return text
	}
	if diff := cmp.Diff(names(m.s), names(next)); diff != "" {
		t.Fatal(diff)
	}
	next.MarkHeld(m.held, m.now) // the kernel shows those too
	m.s = next
	m.note()
}

// check is what must hold between any two moves.
func (m *machine) check(t *rapid.T) {
	if err := m.s.Check(); err != nil {
		t.Fatal(err)
	}
	owns := map[netip.Addr]eni.Key{}
	type hold struct {
		eni.Key
		eni.Family
	}
	holds := map[hold]int{}
	for _, a := range m.s.Used() {
		owns[a.Addr] = a.Owner.Key
		holds[hold{a.Owner.Key, a.Family()}]++
	}
	held := map[netip.Addr]string{}
	for _, a := range m.s.HeldAddresses() {
		held[a.Addr] = a.HeldBy
	}
	if !maps.Equal(m.held, held) {
		t.Fatalf("the node state says that others hold %v, the notes say %v", held, m.held)
	}
	if !maps.Equal(m.owns, owns) {
		t.Fatalf("the node state says %v, the notes say %v", owns, m.owns)
	}
	m.checkKept(t)
	for h, n := range holds {
		if n > 1 {
			t.Fatalf("%s holds %d %s addresses", h.Key, n, h.Family)
		}
	}
	c := m.s.Count(m.now, nil)
	if c.Free+c.Used+c.Cooling+c.Releasing+c.Held+c.Reserved != c.Total || c.Total != len(m.s.Addresses) || c.Used != len(owns) || c.Held != len(held) {
		t.Fatalf("%+v does not sum up", c)
	}
	cooling, next := 0, time.Duration(0)
	for _, a := range m.s.Addresses {
		if at, nobodys := m.free[a.Addr]; nobodys && at > m.now {
			if cooling++; next == 0 || at-m.now < next {
				next = at - m.now
			}
		}
	}
	if c.Cooling != cooling || c.NextFree != next {
		t.Fatalf("%d cool, the next is free in %s; want %d and %s", c.Cooling, c.NextFree, cooling, next)
	}
}

func sorted(addresses []eni.Address) string {
	slices.SortFunc(addresses, func(a, b eni.Address) int { return a.Addr.Compare(b.Addr) })
	return show(addresses)
}
