package order

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Single addresses that fill a delegated prefix are shown as that prefix, and the other way round where prefixes were turned off. Nothing has
// gone: in every status the node has all of them.
func TestAnotherFormOfTheSameAddressesTakesNone(t *testing.T) {
	block := netip.MustParsePrefix("10.0.0.16/28")
	var singles []netip.Prefix
	limits := eni.Limits{ENIs: 4, V4: 145, V4Block: eni.Block{Bits: 28, Size: 16}}
	for _, a := range Addresses(limits, block) {
		singles = append(singles, netip.PrefixFrom(a, 32))
	}
	for name, tt := range map[string]struct{ has, shown []netip.Prefix }{
		"singles fill a prefix": {singles, []netip.Prefix{block}},
		"a prefix in singles":   {[]netip.Prefix{block}, singles},
	} {
		term := NewTerm(lease, 7, 0)
		v := View{Spec: Spec{Mode: Operator, Families: []eni.Family{eni.IPv4}, Slots: 16}, Status: Status{Mode: Operator, Epoch: 7, Revision: 3, Limits: limits,
			ENIs: []ENI{{ID: "eni-a", State: Attached, Addresses: tt.has}}}}
		began := Moment{Mono: time.Minute, Wall: time.Unix(1_800_000_000, 0)}
		for i := range 4 {
			v.Status, _ = term.Described(v, began, Description{Began: began, Shown: map[string][]netip.Prefix{"eni-a": tt.shown}})
			if have := Have(v.Spec, v.Status); have < 16 {
				t.Errorf("%s: %d of 16 slots after %d describes", name, have, i+1)
			}
			began = began.after(lease.Settle, lease.Settle)
		}
	}
}

// A prefix of which single addresses are left, since somebody has taken it and given some of it back, loses the others and nothing else. What is
// accepted of it stays accepted.
func TestOfAPrefixOnlyWhatIsMissingGoes(t *testing.T) {
	block := netip.MustParsePrefix("10.0.0.16/28")
	limits := eni.Limits{ENIs: 4, V4: 145, V4Block: eni.Block{Bits: 28, Size: 16}}
	var shown []netip.Prefix
	for _, a := range Addresses(limits, block)[:10] {
		shown = append(shown, netip.PrefixFrom(a, 32))
	}
	for name, tt := range map[string]struct {
		on        map[string][]netip.Prefix
		releasing []netip.Prefix
		want      int
	}{
		"on its ENI":             {map[string][]netip.Prefix{"eni-a": shown, "eni-b": nil}, nil, 10},
		"some on another ENI":    {map[string][]netip.Prefix{"eni-a": shown[:4], "eni-b": shown[4:]}, nil, 10},
		"accepted, on its ENI":   {map[string][]netip.Prefix{"eni-a": shown, "eni-b": nil}, []netip.Prefix{block}, 0},
		"accepted, some are not": {map[string][]netip.Prefix{"eni-a": shown, "eni-b": nil}, shown[:3], 7},
	} {
		term := NewTerm(lease, 7, 0)
		v := View{Spec: Spec{Mode: Operator, Families: []eni.Family{eni.IPv4}, Slots: 16}, Status: Status{Mode: Operator, Epoch: 7, Revision: 3, Limits: limits,
			Releasing: tt.releasing, ENIs: []ENI{{ID: "eni-a", State: Attached, Addresses: []netip.Prefix{block}}, {ID: "eni-b", Index: 1, State: Attached}}}}
		began := Moment{Mono: time.Minute, Wall: time.Unix(1_800_000_000, 0)}
		for i := range 4 {
			v.Status, _ = term.Described(v, began, Description{Began: began, Shown: tt.on})
			if have := Have(v.Spec, v.Status); have < tt.want {
				t.Errorf("%s: %d of %d slots after %d describes", name, have, tt.want, i+1)
			}
			began = began.after(lease.Settle, lease.Settle)
		}
		if have := Have(v.Spec, v.Status); have != tt.want || len(v.Status.attachedAddrs()) != len(shown) {
			t.Errorf("%s: %d slots, want %d, of %+v", name, have, tt.want, v.Status)
		}
	}
}
