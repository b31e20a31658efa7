package keys

import (
	"net/netip"
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestThePatternOfRangesRefusesWhatIsNone(t *testing.T) {
	pattern := regexp.MustCompile(CIDRPattern())
	for _, text := range []string{"10.0.0.0/8", "0.0.0.0/0", "172.16.0.0/12", "10.128.0.0/9", "10.1.2.128/25", "192.0.2.1/32", "::/0", "2001:db8::/32", "fd00::ffff/128",
		"2001:db8:0:0:0:0:0:0/64", "::ffff:10.0.0.0/104", "64:ff9b::192.0.2.0/120"} {
		if !pattern.MatchString(text) {
			t.Errorf("%s is refused", text)
		}
	}
	for _, text := range []string{"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "10.0.0.0.0/8", "256.0.0.0/8", "10.0.0.0/08", "010.0.0.0/8", "10.0.0.0/-1", "10.1.0.0/8",
		"10.0.1.0/16", "10.0.0.1/24", "1.0.0.0/0", "10.0.0.0/16 ", "2001:db8::/129", "2001::db8::/32", "2001:db8/32", "12345::/16", "1:2:3:4:5:6:7:8:9/64", "fe80::1%eth0/64", "db8/32", ":/0"} {
		if pattern.MatchString(text) {
			t.Errorf("%s is taken", text)
		}
		if p, err := netip.ParsePrefix(text); err == nil && p == p.Masked() {
			t.Errorf("%s is a range", text)
		}
	}
}

// A file that the agent takes is one by the schema too.
func TestThePatternOfRangesTakesEachRange(t *testing.T) {
	pattern := regexp.MustCompile(CIDRPattern())
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "bytes")
		addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 10, 128, 255}), size, size).Draw(t, "address"))
		p, err := addr.Prefix(rapid.IntRange(0, 8*size).Draw(t, "bits"))
		if err != nil {
			t.Fatal(err)
		}
		text := p.String()
		if rapid.Bool().Draw(t, "whole") {
			text = netip.PrefixFrom(p.Addr(), p.Bits()).Addr().StringExpanded() + text[len(p.Addr().String()):]
		}
		if again, err := netip.ParsePrefix(text); err != nil || again != p {
			t.Skip("netip does not take it")
		}
		if !pattern.MatchString(text) {
			t.Fatalf("%s is refused", text)
		}
	})
}
