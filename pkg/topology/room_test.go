package topology

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/eni"
)

// Room is as many addresses as Choose gives away until it finds none.
func TestRoomIsWhatCanBeChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			from := rapid.IntRange(0, 80).Draw(t, name)
			return rapid.SampledFrom([]string{"", fmt.Sprintf("%d-%d", from, from+rapid.IntRange(0, 12).Draw(t, name+" size"))}).Draw(t, name+" is")
		}
		k, of := twoZones(Sticky, text("y"), text("z"))
		k.Topologies = append(k.Topologies, Topology{Name: "u", Sources: []Source{{"s-z", ranges(text("other"))}}})
		k.Blocks = []netip.Prefix{netip.MustParsePrefix(rapid.SampledFrom([]string{"10.0.0.0/28", "10.0.0.32/27", "10.0.0.16/28"}).Draw(t, "block"))}
		k.Taken = taken(rapid.SampledFrom([]string{"4-6", "20-24 30", "70"}).Draw(t, "taken"))
		all := k.Taken // it makes no difference where it is written that one is taken, or how often
		k.Taken, k.On, k.Beside = map[netip.Addr]bool{}, map[netip.Addr][]string{}, map[netip.Addr]int{}
		for _, at := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
			places := rapid.IntRange(1, 7).Draw(t, "places")
			if places&1 > 0 {
				k.Taken[at] = true
			}
			if places&2 > 0 {
				k.On[at] = []string{"node"}
			}
			if places&4 > 0 {
				k.Beside[at] = 2
			}
		}
		for i := range k.Subnets {
			k.Subnets[i].Exclusive = true
			k.Subnets[i].V4 = netip.PrefixFrom(k.Subnets[i].V4.Addr(), 25)
		}
		plain := *k
		plain.Taken, plain.On, plain.Beside = all, nil, nil
		if a, b := k.Room(of), plain.Room(of); a != b {
			t.Fatalf("room for %d, and for %d where all that is taken is in one place", a, b)
		}
		want := 0
		for _, zone := range []string{"y", "z"} {
			for {
				c, wait := Choose(of, member(fmt.Sprint(zone, want)), Node{Name: "n", Zone: zone, Anywhere: true}, eni.IPv4, k)
				if wait.Cause != None {
					break
				}
				k.Claims.Put(c)
				want++
			}
		}
		claimed := k.Claims
		k.Claims = Claims{}
		if got := k.Room(of); got != want {
			t.Fatalf("room for %d, and %d were chosen", got, want)
		}
		if k.Claims = claimed; k.Room(of) != 0 {
			t.Fatalf("room for %d when all is chosen", k.Room(of))
		}
	})
}

func TestTheRoomOfARangeOfIPv6IsBounded(t *testing.T) {
	for text, want := range map[[2]string]int{
		{"fd00::", "fd00::ff"}: 256, {"fd00::", "fd00::ffff:ffff"}: math.MaxInt32, {"fd00::", "fd00:0:0:1::"}: math.MaxInt32, {"10.0.0.1", "10.0.0.1"}: 1, {"10.0.0.0", "10.0.1.255"}: 512,
	} {
		if got := (Range{netip.MustParseAddr(text[0]), netip.MustParseAddr(text[1])}).size(); got != want {
			t.Errorf("%v has %d addresses, want %d", text, got, want)
		}
	}
}
