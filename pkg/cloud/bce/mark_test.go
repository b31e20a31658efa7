package bce

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
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
		want := driver.Mark{
			Instance: rapid.StringMatching(`i-[A-Za-z0-9]{1,38}`).Draw(t, "instance"),
			Index:    rapid.IntRange(1, eni.MaxIndex).Draw(t, "index"),
			Asked:    time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "asked")).UTC(),
			Token:    rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "token"),
			Cluster:  rapid.StringMatching(`([A-Za-z0-9._][A-Za-z0-9._-]{0,31})?`).Draw(t, "cluster"),
		}
		if rapid.Bool().Draw(t, "has IPv6") {
			b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")
			want.V6 = netip.AddrFrom16([16]byte(b))
			if want.V6.Is4In6() {
				t.Skip("no address of a subnet")
			}
		}
		text, ok := markText(want)
		if !ok {
			t.Fatalf("%+v does not fit: %q", want, text)
		}
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
		if got := shortZone(tt.a) == shortZone(tt.b); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

// FuzzDecode is about whatever the cloud may answer: an ENI that is read is right as far
// as one answer can be, or says why not.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"eniId":"eni-1","instanceId":"i-1","macAddress":"fa:26:00:0d:51:c7","vpcId":"vpc-1","subnetId":"sbn-1",
		"status":"inuse","description":"enipool 1 i-1 3 1700000000000 token - 2001:db8::4","createdTime":"2019-01-30T10:44:52Z",
		"privateIpSet":[{"primary":true,"privateIpAddress":"10.0.0.4"},{"privateIpAddress":"10.0.0.8"}],
		"ipv6PrivateIpSet":[{"privateIpAddress":"2001:db8::4"},{"privateIpAddress":"2001:db8::5"}]}`))
	f.Add([]byte(`{"eniId":"eni-1","macAddress":"fa:26:00:0d:51:c7","subnetId":"sbn-1","status":"available","privateIpSet":[{"primary":true}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e eniAnswer
		if json.Unmarshal(text, &e) != nil {
			return
		}
		i := decodeInterface(e)
		if i.Wrong != "" {
			return
		}
		hw, err := net.ParseMAC(i.MAC)
		if err != nil || len(hw) != 6 || hw.String() != i.MAC || !validID(i.ID) || !i.V4.Is4() || i.V6.IsValid() || i.Index != -1 {
			t.Errorf("read is %+v", i)
		}
		if i.State == driver.Attached && i.Instance == "" {
			t.Errorf("%+v is attached nowhere", i)
		}
		seen := map[netip.Addr]bool{i.V4: true}
		for _, a := range i.Singles {
			if seen[a] || !a.IsValid() || a.Zone() != "" || a.Is4In6() {
				t.Errorf("address %s of %+v", a, i)
			}
			seen[a] = true
		}
		if m := i.Mark; m.Token != "" {
			if text, ok := markText(m); !ok && len(m.Cluster) <= 32 {
				t.Errorf("mark %+v of %q reads back as %q", m, e.Description, text)
			}
		} else if m != (driver.Mark{}) {
			t.Errorf("mark %+v has no token", m)
		}
	})
}
