package bce

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

func simSubnet(id, v4 string) sim.Subnet { return sim.Subnet{ID: id, V4: netip.MustParsePrefix(v4)} }

func sprint(format string, v any) string {
	return fmt.Sprintf(format, slices.Repeat([]any{v}, strings.Count(format, "%"))...)
}

func TestADescriptionReadsBackAsItWasWrittenAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := mark{
			instance: rapid.StringMatching(`i-[A-Za-z0-9]{1,38}`).Draw(t, "instance"),
			index:    rapid.IntRange(1, eni.MaxIndex).Draw(t, "index"),
			asked:    time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "asked")).UTC(),
			token:    rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "token"),
			cluster:  rapid.StringMatching(`([A-Za-z0-9._][A-Za-z0-9._-]{0,31})?`).Draw(t, "cluster"),
		}
		if rapid.Bool().Draw(t, "has IPv6") {
			b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")
			want.v6 = netip.AddrFrom16([16]byte(b))
			if want.v6.Is4In6() {
				t.Skip("no address of a subnet")
			}
		}
		text := want.String()
		got, ok := parseMark(text)
		if !ok || got != want {
			t.Fatalf("%q reads as %+v, %v; want %+v", text, got, ok, want)
		}
		if len(text) > 200 {
			t.Fatalf("%q has %d characters", text, len(text))
		}
	})
}

func TestWhatWeDidNotWriteIsNotOurs(t *testing.T) {
	for _, text := range []string{"", "auto created by cce-cni, do not modify", "enipool 1 i-1 1 1 token - -  ", "enipool 2 i-1 1 1 token - -",
		"enipool 1 i-1 0 1 token - -", "enipool 1 i-1 151 1 token - -", "enipool 1 i-1 x 1 token - -", "enipool 1  1 1 token - -",
		"enipool 1 i-1 1 x token - -", "enipool 1 i-1 1 1  - -", "enipool 1 i-1 1 1 token - 10.0.0.1", "enipool 1 i-1 1 1 token - fe80::1%eth0",
		"enipool 1 i-1 1 1 " + strings.Repeat("x", 65) + " - -"} {
		if m, ok := parseMark(text); ok {
			t.Errorf("%q reads as %+v", text, m)
		}
	}
}

func TestZonesAreTheSameInBothWaysOfWriting(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"zoneA", "cn-bj-a", true}, {"cn-bj-a", "cn-bj-a", true}, {"zoneD", "zoned", true},
		{"zoneA", "cn-bj-b", false}, {"zoneA", "zoneB", false}, {"zoneA", "", false},
	} {
		if got := sameZone(tt.a, tt.b); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

// FuzzShow is about whatever the cloud may answer: what is shown is right, or not
// shown.
func FuzzShow(f *testing.F) {
	f.Add([]byte(`{"eniId":"eni-1","instanceId":"i-1","macAddress":"fa:26:00:0d:51:c7","vpcId":"vpc-1","subnetId":"sbn-1",
		"status":"inuse","description":"enipool 1 i-1 3 1700000000000 token - 2001:db8::4","createdTime":"2019-01-30T10:44:52Z",
		"privateIpSet":[{"primary":true,"privateIpAddress":"10.0.0.4"},{"privateIpAddress":"10.0.0.8"}],
		"ipv6PrivateIpSet":[{"privateIpAddress":"2001:db8::4"},{"privateIpAddress":"2001:db8::5"}]}`))
	f.Add([]byte(`{"eniId":"eni-1","macAddress":"fa:26:00:0d:51:c7","subnetId":"sbn-1","status":"available","privateIpSet":[{"primary":true}]}`))
	c, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	me := self{instance: "i-1", vpc: "vpc-1"}
	in := network{id: "sbn-1", vpc: "vpc-1", v4: netip.MustParsePrefix("10.0.0.0/24"), v6: netip.MustParsePrefix("2001:db8::/64")}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e sdk.Eni
		if json.Unmarshal(text, &e) != nil {
			return
		}
		n := nic{Eni: e}
		n.mark, n.ours = c.isOurs(me, e)
		i, err := show(n, me, in)
		if err != nil {
			return
		}
		if !i.V4.IsValid() || !in.v4.Contains(i.V4.Primary.Addr()) || i.V6.IsValid() && !in.v6.Contains(i.V6.Primary.Addr()) {
			t.Errorf("primary %v and %v", i.V4, i.V6)
		}
		seen := map[netip.Addr]bool{i.V4.Primary.Addr(): true, i.V6.Primary.Addr(): true}
		for _, a := range i.Addresses {
			if seen[a] || !in.may(a) || a.Is6() && !i.V6.IsValid() {
				t.Errorf("address %s of %+v", a, i)
			}
			seen[a] = true
		}
		if i.Ours != (i.Token != "") || !slices.IsSortedFunc(i.Addresses, netip.Addr.Compare) {
			t.Errorf("shown is %+v", i)
		}
	})
}
