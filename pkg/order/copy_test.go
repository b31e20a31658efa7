package order

import (
	"net/netip"
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
