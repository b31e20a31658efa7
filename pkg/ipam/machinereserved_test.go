package ipam

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// keeping is for whom an address is kept, and when the last pod that had it ended. While a pod has it
// the time means nothing.
type keeping struct {
	eni.Reservation
	since time.Duration
}

// somePod draws for whom an address is kept: few names and uids, so that they meet.
func somePod(t *rapid.T) eni.Reservation {
	r := eni.Reservation{Topology: "db", Namespace: "db", Pod: rapid.SampledFrom([]string{"", "db-0", "db-1", "db-2"}).Draw(t, "for"),
		UID: rapid.SampledFrom([]string{"", "", "u-1", "u-2"}).Draw(t, "uid")}
	if r.Pod == "" {
		r.Namespace, r.UID = "", ""
	}
	return r
}

func (m *machine) reserve(t *rapid.T) {
	wanted, want := map[netip.Addr]eni.Reservation{}, map[netip.Addr]bool{}
	r := somePod(t)
	for _, a := range m.some(t) {
		wanted[a] = r
		since, nobodys := m.free[a]
		had, kept := m.kept[a]
		owner, used := m.ownerOf(a)
		switch {
		case kept && had.Reservation == r:
		case used && (r.Pod == "" || r.IsFor(owner)): // its own pod has it
			m.kept[a], want[a] = keeping{r, m.now}, true
		case used:
		case nobodys && since <= m.now:
			m.kept[a], want[a] = keeping{r, max(0, since-m.s.Settings.CoolDown)}, true
			delete(m.free, a)
		case nobodys: // it cools
			m.kept[a], want[a] = keeping{eni.Reservation{Topology: r.Topology}, since - m.s.Settings.CoolDown}, true
			delete(m.free, a)
		case kept && (had.Pod == r.Pod || r.Pod == "" || had.since+m.s.Settings.CoolDown <= m.now):
			m.kept[a], want[a] = keeping{r, had.since}, true
		}
	}
	m.same(t, "reserved", want, m.s.Reserve(wanted, m.now))
}

func (m *machine) ownerOf(addr netip.Addr) (eni.Owner, bool) {
	for _, a := range m.s.Used() {
		if a.Addr == addr {
			return *a.Owner, true
		}
	}
	return eni.Owner{}, false
}

// unreserve takes back what is kept, and then does so no more: between the two it is nobody's, and afterwards kept as before.
func (m *machine) unreserve(t *rapid.T) {
	addrs, want := m.some(t), map[netip.Addr]bool{}
	for _, a := range addrs {
		r, kept := m.kept[a]
		if _, used := m.owns[a]; kept && !used && r.since+m.s.Settings.CoolDown <= m.now {
			want[a] = true
			m.kept[a] = keeping{r.Reservation, m.now}
		}
	}
	m.same(t, "unreserved", want, m.s.Unreserve(addrs, m.now))
	if err := m.s.Check(); err != nil {
		t.Fatal(err)
	}
	for _, a := range m.s.Addresses {
		if want[a.Addr] && a.State != eni.Releasing {
			t.Fatalf("%s is %s", a.Addr, a.State)
		}
	}
	m.same(t, "kept again", want, m.s.CancelRelease(addrs, m.now))
}

func (m *machine) claim(t *rapid.T) { m.doClaim(t) }

// doClaim lets a pod of those names start, mostly in a sandbox of its own.
func (m *machine) doClaim(t *rapid.T) (Lease, bool) {
	r := somePod(t)
	o := m.newOwner(t)
	o.Namespace, o.Pod, o.UID = r.Namespace, r.Pod, r.UID
	topology := rapid.SampledFrom([]string{"", "db", "db", "cache"}).Draw(t, "topology")
	device := rapid.SampledFrom([]string{"", "", "eth1", "nowhere"}).Draw(t, "device")
	holds := slices.Contains(slices.Collect(maps.Values(m.owns)), o.Key)
	want, waits := m.expectClaim(o, topology, device)
	waits = waits || topology != "" || m.s.Settings.IsGated(o.Namespace)
	l, err := m.s.AssignReserved(o, topology, device, m.now)
	var awaited *Awaited
	switch {
	case holds && (errors.Is(err, ErrDuplicate) || err == nil && len(l.Addresses) == 0):
		return Lease{}, false // AssignPod refuses it
	case holds:
		t.Fatalf("%s holds an address and got %v, %v", o.Pod, l, err)
	case want == nil && waits && errors.As(err, &awaited):
		return Lease{}, false
	case want == nil && !waits && err == nil && len(l.Addresses) == 0:
		return Lease{}, false
	case want == nil || err != nil:
		t.Fatalf("want %v, waits %v; got %v, %v", want, waits, l, err)
	}
	var got []netip.Addr
	for _, a := range l.Addresses {
		got = append(got, a.Addr)
		m.owns[a.Addr] = o.Key
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Fatalf("%s got %v, want %v", o.Pod, got, want)
	}
	return l, true
}

// expectClaim is the rule in plain words: nothing of another topology, nothing while another sandbox of the pod has what is kept for it, else
// of the first ENI that has one of each family kept for the pod, and rather one for its uid than one for any. It
// tells too whether the pod waits for that.
func (m *machine) expectClaim(o eni.Owner, topology, device string) (want []netip.Addr, waits bool) {
	mine := func(a eni.Address) bool {
		r, kept := m.kept[a.Addr]
		return kept && r.Pod != "" && r.Namespace == o.Namespace && r.Pod == o.Pod && (r.UID == o.UID || r.UID == "" || o.UID == "") && (topology == "" || r.Topology == topology)
	}
	for _, a := range m.s.Addresses {
		k, used := m.owns[a.Addr]
		if mine(a) && used && k != o.Key {
			return nil, true
		}
		waits = waits || mine(a) && !used
	}
	for _, e := range m.s.ENIs {
		var got []netip.Addr
		for _, f := range m.s.Settings.Families {
			var candidates []eni.Address
			for _, a := range m.s.Addresses {
				if _, used := m.owns[a.Addr]; !used && mine(a) && a.ENI == e.Index && a.Family() == f {
					candidates = append(candidates, a)
				}
			}
			exact := slices.IndexFunc(candidates, func(a eni.Address) bool { return m.kept[a.Addr].UID != "" })
			if len(candidates) > 0 {
				got = append(got, candidates[max(0, exact)].Addr)
			}
		}
		if len(got) == len(m.s.Settings.Families) && (device == "" || device == e.Device) {
			return got, true
		}
	}
	return nil, waits
}

func (m *machine) claimAndUndo(t *rapid.T) {
	exact, owns := slices.Clone(m.s.Addresses), maps.Clone(m.owns)
	l, ok := m.doClaim(t)
	if !ok {
		return
	}
	m.now += time.Duration(rapid.IntRange(0, 60).Draw(t, "s")) * time.Second
	m.s.UndoLease(l)
	if m.owns = owns; !slices.Equal(exact, m.s.Addresses) {
		t.Fatalf("undo left %s", show(m.s.Addresses))
	}
}

// reservationsStay: another inventory takes no address from the pod that it is kept for.
func (m *machine) reservationsStay(t *rapid.T, old, next *State) {
	for _, was := range old.Addresses {
		at := slices.IndexFunc(next.Addresses, func(a eni.Address) bool { return a.Addr == was.Addr })
		if was.Reservation == nil || at < 0 {
			continue
		}
		if is := next.Addresses[at]; is.Reservation == nil || *is.Reservation != *was.Reservation || is.State != was.State {
			t.Fatalf("%s was %s for %+v and is %s for %v", was.Addr, was.State, *was.Reservation, is.State, is.Reservation)
		}
	}
}

// checkKept: what is kept for a pod only that pod has, and nobody can have what is kept for nobody yet.
func (m *machine) checkKept(t *rapid.T) {
	kept := 0
	for _, a := range m.s.Addresses {
		r, notes := m.kept[a.Addr]
		if notes != (a.Reservation != nil) || notes && *a.Reservation != r.Reservation {
			t.Fatalf("%s is reserved for %v, the notes say %v %v", a.Addr, a.Reservation, notes, r)
		}
		k, used := m.owns[a.Addr]
		switch {
		case !notes:
			continue
		case used && (a.State != eni.Used || a.Owner.Key != k || !r.IsNobodys() && !r.IsFor(*a.Owner)):
			t.Fatalf("%s is kept for %+v, and %s is %s of %+v", a.Addr, r, a.Addr, a.State, a.Owner)
		case !used && (a.State != eni.Reserved || a.Since != r.since):
			t.Fatalf("%s is %s since %s, want reserved since %s", a.Addr, a.State, a.Since, r.since)
		}
		if got := m.s.Clone().StartRelease([]netip.Addr{a.Addr}, m.now); len(got) > 0 {
			t.Fatalf("%s is kept for %+v and can be released", a.Addr, r)
		}
		nic, _ := m.s.Interface(a.ENI)
		if m.s.Clone().DropENI(nic.ID) == nil {
			t.Fatalf("%s is kept for %+v and its ENI can be dropped", a.Addr, r)
		}
		kept++
	}
	if c := m.s.Count(m.now, nil); c.Reserved+c.Claimed != kept {
		t.Fatalf("%d are reserved and %d claimed, want %d", c.Reserved, c.Claimed, kept)
	}
}
