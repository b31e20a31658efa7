package topology

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/placement"
)

func addr(text string) netip.Addr {
	if !strings.ContainsAny(text, ".:") {
		text = "10.0.0." + text
	}
	return netip.MustParseAddr(text)
}

// ranges reads "2-254 260" as ranges of 10.0.0.0/24, or whole addresses.
func ranges(text string) (list []Range) {
	for _, r := range strings.Fields(text) {
		from, to, is := strings.Cut(r, "-")
		if !is {
			to = from
		}
		list = append(list, Range{addr(from), addr(to)})
	}
	return list
}

// inZone is 10.0.0.0/24 as EC2 has subnets: it keeps the first four addresses and the last.
func inZone(id, zone string) Subnet {
	return Subnet{ID: id, Zone: zone, V4: netip.MustParsePrefix("10.0.0.0/24"), Ready: true, Exclusive: true, KeptFirst: 4, KeptLast: 1}
}

func TestACoverOfRanges(t *testing.T) {
	dual := inZone("s", "z")
	dual.V6 = netip.MustParsePrefix("2001:db8::/64")
	for _, tt := range []struct{ ranges, want string }{
		{"16-31", "10.0.0.16/28"},
		{"10-20", "10.0.0.10/31 10.0.0.12/30 10.0.0.16/30 10.0.0.20/32"},
		{"24-31 16-23", "10.0.0.16/28"},
		{"16-25 20-31", "10.0.0.16/28"},
		{"16-31 20", "10.0.0.16/28"},
		{"32-47 16-31 64", "10.0.0.16/28 10.0.0.32/28 10.0.0.64/32"},
		{"0-15", "10.0.0.4/30 10.0.0.8/29"},
		{"254-255", "10.0.0.254/32"},
		{"0-3 255", ""},
		{"2001:db8::-2001:db8::7 16-31", "10.0.0.16/28 2001:db8::4/126"},
		{"", ""},
	} {
		got, err := Cover(Source{Ranges: ranges(tt.ranges)}, dual)
		if strings.Trim(fmt.Sprint(got), "[]") != tt.want || err != nil {
			t.Errorf("%s: %v, %v; want %s", tt.ranges, got, err, tt.want)
		}
	}
	if got, _ := Cover(Source{Ranges: ranges("2-254")}, Subnet{V4: dual.V4}); len(got) != 13 {
		t.Errorf("2 to 254 of a cloud that keeps nothing: %v", got)
	}
}

func TestARangeThatIsNoneOfTheSubnetIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"16-31 10.0.1.4-10.0.1.7":       "10.0.1.4-10.0.1.7 is not in subnet s, which has 10.0.0.0/24",
		"250-10.0.1.3":                  "10.0.0.250-10.0.1.3 is not in subnet s, which has 10.0.0.0/24",
		"20-10":                         "10.0.0.20-10.0.0.10 is no range",
		"10-2001:db8::1":                "10.0.0.10-2001:db8::1 is no range",
		"2001:db8::4":                   "2001:db8::4-2001:db8::4 is not in subnet s, which has 10.0.0.0/24",
		"0.0.0.0-255.255.255.255 16-31": "0.0.0.0-255.255.255.255 is not in subnet s, which has 10.0.0.0/24",
	} {
		if _, err := Cover(Source{Ranges: ranges(text)}, inZone("s", "z")); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Cover(Source{Ranges: []Range{{}}}, inZone("s", "z")); err == nil {
		t.Error("a range of nothing is one")
	}
}

func TestASubnetThatTheCloudKeepsWhollyHasNoAddresses(t *testing.T) {
	small := Subnet{ID: "s", V4: netip.MustParsePrefix("0.0.0.0/30"), KeptFirst: 4, KeptLast: 4}
	if got := usableRanges(Source{}, small, eni.IPv4); got != nil {
		t.Errorf("%v", got)
	}
	if got := usableRanges(Source{}, inZone("s", "z"), eni.IPv6); got != nil {
		t.Errorf("of a family that the subnet lacks: %v", got)
	}
	if got := usableRanges(Source{}, inZone("s", "z"), eni.IPv4); fmt.Sprint(got) != "[10.0.0.4-10.0.0.254]" {
		t.Errorf("without ranges: %v", got)
	}
}

// A cover has each address of the ranges that the cloud gives, no other one, each once and in order; and no two of its prefixes
// could be one, so no fewer would do.
func TestACoverIsExactAndTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inZone("s", "z")
		in.KeptFirst, in.KeptLast = rapid.IntRange(0, 5).Draw(t, "first"), rapid.IntRange(0, 5).Draw(t, "last")
		var want [256]bool
		var asked []Range
		for range rapid.IntRange(0, 8).Draw(t, "ranges") {
			from := rapid.IntRange(0, 255).Draw(t, "from")
			to := rapid.IntRange(from, min(255, from+rapid.SampledFrom([]int{0, 3, 16, 255}).Draw(t, "length"))).Draw(t, "to")
			asked = append(asked, Range{addr(fmt.Sprint(from)), addr(fmt.Sprint(to))})
			for at := max(from, in.KeptFirst); at <= min(to, 255-in.KeptLast); at++ {
				want[at] = true
			}
		}
		list, err := Cover(Source{Ranges: asked}, in)
		if err != nil {
			t.Fatal(err)
		}
		next := 0
		for i, p := range list {
			first := int(p.Addr().As4()[3])
			if first < next || p != p.Masked() || !in.V4.Contains(p.Addr()) {
				t.Fatalf("%v: %s", list, p)
			}
			for ; next < first+placement.Size(p, 256); next++ {
				if want[next] != (next >= first) {
					t.Fatalf("%v covers %v, and .%d is wrong", list, asked, next)
				}
			}
			if i > 0 && list[i-1].Bits() == p.Bits() && netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked().Contains(list[i-1].Addr()) {
				t.Fatalf("%v: %s and the one before are one", list, p)
			}
		}
		for ; next < 256; next++ {
			if want[next] {
				t.Fatalf("%v lacks .%d of %v", list, next, asked)
			}
		}
	})
}
