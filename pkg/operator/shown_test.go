package operator

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"pgregory.net/rapid"
)

// What the cloud shows one by one stands in the object as whole prefixes where it can, and means the same addresses.
func TestAddressesMeanTheSameInPrefixes(t *testing.T) {
	l := eni.Limits{ENIs: 2, V4: 65, V6: 33, V4Block: eni.Block{Bits: 28, Size: 16}, V6Block: eni.Block{Bits: 80, Size: 16}}
	whole := []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28"), netip.MustParsePrefix("10.0.0.64/28"), netip.MustParsePrefix("2001:db8:0:0:1::/80")}
	rapid.Check(t, func(t *rapid.T) {
		var addrs []netip.Addr
		var want []netip.Prefix
		for _, p := range whole {
			if rapid.Bool().Draw(t, p.String()) {
				addrs = append(addrs, order.Addresses(l, p)...)
				want = append(want, p)
			}
		}
		for n := range rapid.IntRange(0, 5).Draw(t, "single") {
			addrs = append(addrs, netip.AddrFrom4([4]byte{10, 0, 1, byte(n)}))
		}
		got := prefixesOf(l, addrs)
		back := order.Addresses(l, got...)
		slices.SortFunc(back, netip.Addr.Compare)
		slices.SortFunc(addrs, netip.Addr.Compare)
		if !slices.Equal(back, addrs) {
			t.Errorf("%v became %v", addrs, got)
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Errorf("%s is not in %v", p, got)
			}
		}
	})
}

// An ENI, or an address, that a describe leaves out because what the cloud tells of it can't be right counts as it was.
func TestWhatCantBeRightTakesNothingAway(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.4/32"), netip.MustParsePrefix("10.0.0.5/32"), netip.MustParsePrefix("10.0.0.6/32")
	status := order.Status{ENIs: []order.ENI{{ID: "eni-1", Addresses: []netip.Prefix{a}}, {ID: "eni-2", Addresses: []netip.Prefix{b, c}}, {ID: "eni-3", Addresses: []netip.Prefix{}}}}
	s := shown{view: cloud.View{Interfaces: []cloud.Interface{{ID: "eni-2", Addresses: nil}},
		Quarantined: []cloud.Quarantined{{ID: "eni-1", Why: "odd"}, {ID: "eni-2", Address: b.Addr(), Why: "odd"}}}}
	d := s.description(status)
	if got, known := d.Shown["eni-1"]; !known || !slices.Equal(got, []netip.Prefix{a}) {
		t.Errorf("an ENI that is left out: %v", got)
	}
	if got := d.Shown["eni-2"]; !slices.Equal(got, []netip.Prefix{b}) {
		t.Errorf("an address that is left out: %v", got)
	}
	if got, known := d.Shown["eni-3"]; known {
		t.Errorf("an ENI that is not there: %v", got)
	}
}

func TestTheInstanceIsTheLastOfAProviderID(t *testing.T) {
	for id, want := range map[string]string{"aws:///eu-west-3a/i-0abc": "i-0abc", "cce://i-abc": "i-abc", "": "", "i-1": "i-1"} {
		if got := InstanceOf(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
