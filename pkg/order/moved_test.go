package order

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A write that conflicts leaves nothing behind: decided again by the term that was copied, the address is quarantined still.
func TestACopyOfATermGoesOnAlone(t *testing.T) {
	p := netip.MustParsePrefix("10.0.0.10/32")
	e, _ := machineENI("eni-a")
	e.Addresses = []netip.Prefix{p}
	v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 2, ENIs: []ENI{e}, Releasing: []netip.Prefix{p}}}
	term := NewTerm(lease, 2, 0)
	term.Asked(v.Status, p) // of this call nobody knows the outcome
	term.Asked(v.Status, p)
	now := Moment{Mono: time.Hour, Wall: time.Unix(0, 0).Add(time.Hour)}
	for range 2 {
		c := term.Copy()
		c.Answered(p)
		if got := c.Unassigned(v, now, p); len(got.Quarantined) != 1 {
			t.Fatalf("quarantined: %v, want %s", got.Quarantined, p)
		}
	}
	term.Answered(p)
	term.Answered(p)
	if got := term.Unassigned(v, now, p); len(got.Quarantined) != 0 {
		t.Errorf("quarantined: %v, want nothing: both outcomes are known", got.Quarantined)
	}
}

// An address that went from one ENI of a node to another is shown by a describe of before where it was: it stays where it is.
func TestAnAddressThatMovesIsOnOneENI(t *testing.T) {
	p := netip.MustParsePrefix("10.0.0.10/32")
	a, _ := machineENI("eni-a")
	b, _ := machineENI("eni-b")
	a.Addresses, b.Index = []netip.Prefix{p}, 1
	v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 2, ENIs: []ENI{a, b}, Releasing: []netip.Prefix{p}}}
	term := NewTerm(lease, 2, 0)
	at := func(s time.Duration) Moment {
		return Moment{Mono: time.Hour + s, Wall: time.Unix(0, 0).Add(time.Hour + s)}
	}
	shown := map[string][]netip.Prefix{"eni-a": {p}, "eni-b": nil}
	v.Status = term.Unassigned(v, at(1), p)
	v.Status = term.Assigned(v, at(2), "eni-b", p)
	for _, began := range []time.Duration{0, lease.Settle} {
		v.Status, _ = term.Described(v, at(lease.Settle), Description{Began: at(began), Shown: shown})
		if on := v.Status.ENIs; len(on[0].Addresses) != 0 || len(on[1].Addresses) != 1 {
			t.Fatalf("after a describe that began at %s it is on %v", began, on)
		}
	}
}

// Between an old status and a describe an address may have gone from one ENI of the node to another: it is where the describe shows it.
func TestADescribeShowsAnAddressOnAnotherENI(t *testing.T) {
	p := netip.MustParsePrefix("10.0.0.10/32")
	for _, first := range []string{"eni-a", "eni-b"} {
		a, _ := machineENI("eni-a")
		b, _ := machineENI("eni-b")
		b.Index = 1
		to := "eni-b"
		if a.Addresses = []netip.Prefix{p}; first == "eni-b" {
			to, a.Addresses, b.Addresses = "eni-a", nil, a.Addresses
		}
		shown := map[string][]netip.Prefix{"eni-a": nil, "eni-b": nil}
		shown[to] = []netip.Prefix{p}
		v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 2, ENIs: []ENI{a, b}}}
		at := Moment{Mono: time.Hour, Wall: time.Unix(0, 0).Add(time.Hour)}
		next, changed := NewTerm(lease, 2, 0).Described(v, at, Description{Began: at, Shown: shown})
		on := map[string]int{}
		for _, e := range next.ENIs {
			on[e.ID] = len(e.Addresses)
		}
		if !changed || on[to] != 1 || on[first] != 0 || next.Revision <= v.Status.Revision {
			t.Errorf("from %s to %s: %+v", first, to, next)
		}
	}
}

// The status without an unassigned address may have been written though its writer was not told. The describe of before, which shows the
// address, does not bring it back then: it may be another node's.
func TestADescribeOfBeforeBringsNoUnassignedAddressBack(t *testing.T) {
	p := netip.MustParsePrefix("10.0.0.10/32")
	e, _ := machineENI("eni-a")
	v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 2, Revision: 5, ENIs: []ENI{e}}} // as it was written
	term := NewTerm(lease, 2, 0)
	at := func(d time.Duration) Moment { return Moment{Mono: d, Wall: time.Unix(0, 0).Add(d)} }
	v.Status = term.Unassigned(v, at(time.Hour+time.Minute), p)
	for _, began := range []time.Duration{time.Hour, time.Hour + time.Minute + lease.Settle/2} {
		d := Description{Began: at(began), Shown: map[string][]netip.Prefix{e.ID: append([]netip.Prefix{p}, e.Addresses...)}}
		if got, _ := term.Described(v, at(time.Hour+2*time.Minute), d); slices.Contains(got.ENIs[0].Addresses, p) {
			t.Errorf("a describe that began at %s brings %s back", began, p)
		}
	}
	d := Description{Began: at(time.Hour + time.Minute + lease.Settle), Shown: map[string][]netip.Prefix{e.ID: append([]netip.Prefix{p}, e.Addresses...)}}
	if got, _ := term.Described(v, at(time.Hour+2*time.Minute), d); !slices.Contains(got.ENIs[0].Addresses, p) {
		t.Error("a later one shows that it was assigned again")
	}
}
