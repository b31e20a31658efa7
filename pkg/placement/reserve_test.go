package placement

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func addr(last string) netip.Addr { return netip.MustParseAddr("10.0.0." + last) }

// prefixes reads "16/28 32/32" as prefixes of 10.0.0.0/24.
func prefixes(text string) (list []netip.Prefix) {
	for _, p := range strings.Fields(text) {
		if !strings.ContainsAny(p, ".:") {
			p = "10.0.0." + p
		}
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

func TestARangeIsCoveredByTheFewestPrefixes(t *testing.T) {
	for _, tt := range []struct{ first, last, want string }{
		{"16", "31", "16/28"},
		{"10", "20", "10/31 12/30 16/30 20/32"},
		{"7", "7", "7/32"},
		{"0", "255", "0/24"},
		{"20", "10", ""},
	} {
		if got := Cover(addr(tt.first), addr(tt.last)); !slices.Equal(got, prefixes(tt.want)) {
			t.Errorf("%s to %s is covered by %v, want %s", tt.first, tt.last, got, tt.want)
		}
	}
	if got := Cover(addr("2"), addr("254")); len(got) != 13 {
		t.Errorf("2 to 254 is covered by %v", got)
	}
	if got := Cover(netip.MustParseAddr("255.255.255.254"), netip.MustParseAddr("255.255.255.255")); fmt.Sprint(got) != "[255.255.255.254/31]" {
		t.Errorf("the last addresses that there are: %v", got)
	}
	if got := Cover(netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::4")); fmt.Sprint(got) != "[2001:db8::1/128 2001:db8::2/127 2001:db8::4/128]" {
		t.Errorf("of IPv6: %v", got)
	}
	if got := Cover(addr("1"), netip.MustParseAddr("2001:db8::4")); got != nil {
		t.Errorf("of two families: %v", got)
	}
}

// What is covered is what was asked for, each address once, and no two prefixes could be one.
func TestACoverHasExactlyTheRange(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		a, b := random.IntN(256), random.IntN(256)
		first, last := min(a, b), max(a, b)
		list := Cover(addr(fmt.Sprint(first)), addr(fmt.Sprint(last)))
		next := first
		for i, p := range list {
			if int(p.Addr().As4()[3]) != next || p != p.Masked() {
				t.Fatalf("seed %d: %d to %d: %v", seed, first, last, list)
			}
			next += Size(p, 1<<20)
			if i > 0 && list[i-1].Bits() == p.Bits() && netip.PrefixFrom(list[i-1].Addr(), p.Bits()-1).Masked().Contains(p.Addr()) {
				t.Fatalf("seed %d: %d to %d: %v are one", seed, first, last, list[i-1:i+1])
			}
		}
		if next != last+1 {
			t.Fatalf("seed %d: %d to %d: %v end at %d", seed, first, last, list, next)
		}
	}
}

func TestRangesAreInOrderAndNoneWithinAnother(t *testing.T) {
	net := netip.MustParsePrefix("10.0.0.0/24")
	for _, tt := range []struct{ asked, want, err string }{
		{"32/28 16/28", "16/28 32/28", ""},
		{"16/28 20/32 24/29 16/28", "16/28", ""},
		{"0/24", "0/24", ""},
		{"", "", ""},
		{"10.0.1.0/28", "", "10.0.1.0/28 is not in the subnet"},
		{"10.0.0.0/23", "", "10.0.0.0/23 is not in the subnet"},
		{"2001:db8::/80", "", "2001:db8::/80 is not in the subnet"},
	} {
		got, err := Ranges(prefixes(tt.asked), net, netip.Prefix{})
		if !slices.Equal(got, prefixes(tt.want)) || fmt.Sprint(err) != fmt.Sprint(tt.err) && (err != nil || tt.err != "") {
			t.Errorf("of %s: %v, %v", tt.asked, got, err)
		}
	}
	var many []netip.Prefix
	for i := range 33 {
		many = append(many, netip.PrefixFrom(addr(fmt.Sprint(4*i)), 32))
	}
	if list, err := Ranges(many[:32], net); err != nil || len(list) != 32 {
		t.Errorf("32 ranges: %v, %v", list, err)
	}
	if _, err := Ranges(many, net); err == nil || !strings.HasPrefix(err.Error(), "33 ranges are too many") {
		t.Errorf("33 ranges: %v", err)
	}
}

func TestOnlyOurReservationsEndAndOnlyWhatIsFreeIsReserved(t *testing.T) {
	ours := func(text string) (list []Reserved) {
		for _, p := range prefixes(text) {
			list = append(list, Reserved{Range: p, Ours: true})
		}
		return list
	}
	theirs := func(text string) (list []Reserved) {
		for _, p := range prefixes(text) {
			list = append(list, Reserved{Range: p})
		}
		return list
	}
	blocks := []Reserved{{Range: prefixes("64/26")[0], Blocks: true}}
	for _, tt := range []struct {
		name, want        string
		there             []Reserved
		make, end, barred string
	}{
		{"nothing", "", nil, "", "", ""},
		{"all is to be made", "16/28 32/28", nil, "16/28 32/28", "", ""},
		{"all is there", "16/28", ours("16/28"), "", "", ""},
		{"one is not wanted any more", "16/28", ours("16/28 32/28"), "", "32/28", ""},
		{"a range becomes two: the old one ends first", "16/29 24/29", ours("16/28"), "16/29 24/29", "16/28", ""},
		{"others' stay, wanted or not", "16/28", theirs("16/28 32/28"), "", "", ""},
		{"a part is others'", "16/28 32/28", theirs("20/32"), "32/28", "", "16/28"},
		{"all of it lies in others'", "16/28", theirs("0/24"), "", "", "16/28"},
		{"one for prefixes is in the way, though it is as long", "64/26", blocks, "", "", "64/26"},
	} {
		got := PlanReserving(prefixes(tt.want), tt.there)
		if !slices.Equal(got.Make, prefixes(tt.make)) || !slices.Equal(got.End, prefixes(tt.end)) || !slices.Equal(got.Barred, prefixes(tt.barred)) || got.Blocked.IsValid() != (tt.barred != "") {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestTheSizeOfARangeHasABound(t *testing.T) {
	for text, want := range map[string]int{"10.0.0.16/28": 16, "10.0.0.1/32": 1, "10.0.0.0/16": 1000, "::/0": 1000, "2001:db8::/127": 2} {
		if got := Size(netip.MustParsePrefix(text), 1000); got != want {
			t.Errorf("%s has %d, want %d", text, got, want)
		}
	}
}
