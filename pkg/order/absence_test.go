package order

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// What a describe lacks is gone when one that began settle before has lacked it too, and none in between has shown it. What it shows counts
// at once.
func TestAbsenceCountsAfterTwoDescribes(t *testing.T) {
	const s = time.Second
	a, b := hosts(10)[0], hosts(11)[0]
	both, none := map[string][]netip.Prefix{"eni-a": {a, b}}, map[string][]netip.Prefix{}
	one := map[string][]netip.Prefix{"eni-a": {a}}
	type look struct {
		at      time.Duration
		shown   map[string][]netip.Prefix
		partial bool
		loose   []string
	}
	for _, tt := range []struct {
		name  string
		looks []look
		has   []netip.Prefix
		state ENIState
	}{
		{"one describe lacks an address", []look{{at: 0, shown: one}}, []netip.Prefix{a, b}, Attached},
		{"another one too soon", []look{{at: 0, shown: one}, {at: s, shown: one}}, []netip.Prefix{a, b}, Attached},
		{"another one settle later", []look{{at: 0, shown: one}, {at: 2 * s, shown: one}}, []netip.Prefix{a}, Attached},
		{"it is there in between", []look{{at: 0, shown: one}, {at: s, shown: both}, {at: 2 * s, shown: one}}, []netip.Prefix{a, b}, Attached},
		{"and not there again", []look{{at: 0, shown: one}, {at: s, shown: both}, {at: 2 * s, shown: one}, {at: 4 * s, shown: one}}, []netip.Prefix{a}, Attached},
		{"one lacks the ENI", []look{{at: 0, shown: none}}, []netip.Prefix{a, b}, Attached},
		{"two lack the ENI", []look{{at: 0, shown: none}, {at: 2 * s, shown: none}}, []netip.Prefix{a, b}, Detached},
		{"one shows the ENI attached nowhere", []look{{at: 0, shown: none, loose: []string{"eni-a"}}}, []netip.Prefix{a, b}, Detached},
		{"of what is partial absence is none", []look{{at: 0, shown: one, partial: true}, {at: 2 * s, shown: one, partial: true}}, []netip.Prefix{a, b}, Attached},
		{"one that is partial ends nothing", []look{{at: 0, shown: one}, {at: s, shown: one, partial: true}, {at: 2 * s, shown: one}}, []netip.Prefix{a}, Attached},
		{"an older one says nothing", []look{{at: 4 * s, shown: both}, {at: 0, shown: one}, {at: 2 * s, shown: one}}, []netip.Prefix{a, b}, Attached},
		{"one is shown at once", []look{{at: 0, shown: map[string][]netip.Prefix{"eni-a": {a, b, hosts(12)[0]}}}}, []netip.Prefix{a, b, hosts(12)[0]}, Attached},
	} {
		e, _ := machineENI("eni-a")
		e.Addresses = []netip.Prefix{a, b}
		v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 1, Revision: 3, ENIs: []ENI{e}}}
		term := NewTerm(lease, 1, 0)
		for _, l := range tt.looks {
			at := Moment{Mono: time.Hour + l.at, Wall: time.Unix(0, 0).Add(l.at)}
			for range 2 { // it is compared again whenever something else is decided
				next, changed := term.Described(v, at, Description{Began: at, Shown: l.shown, Loose: l.loose, Partial: l.partial})
				if !changed && next.Revision != v.Status.Revision {
					t.Errorf("%s: another revision without a change", tt.name)
				}
				v.Status = next
			}
		}
		if got := v.Status.ENIs[0]; !slices.Equal(got.Addresses, tt.has) || got.State != tt.state {
			t.Errorf("%s: %s with %v, want %s with %v", tt.name, got.State, got.Addresses, tt.state, tt.has)
		}
	}
}

// What a term remembers of calls ends with the describe that no call of before can belie: it does not grow with all that a node ever had.
func TestATermForgetsWhatDescribesCanTell(t *testing.T) {
	e, _ := machineENI("eni-a")
	v := View{Spec: Spec{Mode: Operator}, Status: Status{Mode: Operator, Epoch: 1, ENIs: []ENI{e}}}
	term := NewTerm(lease, 1, 0)
	for i := range 100 {
		now := Moment{Mono: time.Hour + time.Duration(i)*time.Second, Wall: time.Unix(int64(i), 0)}
		p := hosts(byte(10 + i))[0]
		v.Status = term.Assigned(v, now, "eni-a", p)
		v.Status.Releasing = []netip.Prefix{p}
		v.Status = term.Unassigned(v, now, p)
		v.Status = term.Made(v, now, "uid", ENI{ID: p.String(), State: Attached})
		v.Status = term.Deleted(v, p.String())
		v.Status, _ = term.Described(v, now, Description{Began: now, Shown: map[string][]netip.Prefix{"eni-a": nil}})
	}
	if n := len(term.taken) + len(term.given) + len(term.made) + len(term.doubts) + len(term.lacked); n > 8 {
		t.Errorf("%d are remembered: %d %d %d %d %d", n, len(term.taken), len(term.given), len(term.made), len(term.doubts), len(term.lacked))
	}
}
