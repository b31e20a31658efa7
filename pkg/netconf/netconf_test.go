package netconf

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// text takes the indentation off a literal.
func text(indented string) string {
	var b strings.Builder
	for line := range strings.Lines(indented) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func nic(index int, v4, v6 bool) eni.Interface {
	i := eni.Interface{ID: "eni-" + string(rune('a'+index)), Index: index, Device: fmt.Sprintf("eth%d", index), MTU: 1500}
	if v4 {
		i.V4 = eni.Net{Primary: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(index), 10}), 24), Gateway: netip.AddrFrom4([4]byte{10, 0, byte(index), 1})}
	}
	if v6 {
		i.V6 = eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("2001:db8:0:%d::10/64", index)), Gateway: netip.MustParseAddr("fe80::1")}
	}
	return i
}

func settings(change func(*ipam.Settings)) ipam.Settings {
	s := ipam.Settings{SNAT: true, MarkMask: ipam.DefaultMarkMask, CoolDown: 30 * time.Second, Families: []eni.Family{eni.IPv4},
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8::/56"), netip.MustParsePrefix("172.16.0.0/12")}}
	if change != nil {
		change(&s)
	}
	return s
}

func used(index int, addrs ...string) []eni.Address { return usedBy("3f2a", index, addrs...) }

func usedBy(container string, index int, addrs ...string) []eni.Address {
	var list []eni.Address
	for _, a := range addrs {
		list = append(list, eni.Address{Addr: netip.MustParseAddr(a), ENI: index, State: eni.Used, Owner: &eni.Owner{
			Key: eni.Key{Network: "pods", Container: container, IfName: "eth0"}, Namespace: "default", Pod: "web-0"}})
	}
	return list
}

func printed[T fmt.Stringer](items []T) string {
	var b strings.Builder
	writeLines(&b, "", items)
	return b.String()
}

func TestTablesAndMarksOfENIs(t *testing.T) {
	for _, tt := range []struct {
		index, table int
		mark, high   uint32 // with the default mask and with 0x00ff0000
	}{
		{0, 254, 0xff, 0xff0000},
		{1, 101, 0x01, 0x010000},
		{2, 102, 0x02, 0x020000},
		{eni.MaxIndex, 250, 0x96, 0x960000},
	} {
		if got := Table(tt.index); got != tt.table {
			t.Errorf("Table(%d) = %d, want %d", tt.index, got, tt.table)
		}
		if got := Mark(tt.index, ipam.DefaultMarkMask); got != tt.mark {
			t.Errorf("Mark(%d) = %#x, want %#x", tt.index, got, tt.mark)
		}
		if got := Mark(tt.index, 0x00ff0000); got != tt.high {
			t.Errorf("Mark(%d) in the high bits = %#x, want %#x", tt.index, got, tt.high)
		}
	}
}

func TestEveryENIHasATableAndAMarkOfItsOwn(t *testing.T) {
	for _, mask := range []uint32{ipam.DefaultMarkMask, 0xff0000, 0xff000000} {
		tables, marks := map[int]bool{}, map[uint32]bool{0: true}
		for i := range eni.MaxIndex + 1 {
			table, mark := Table(i), Mark(i, mask)
			if tables[table] || table == 0 || table == 253 || table == 255 || table == PodsTable || i > 0 && table == MainTable {
				t.Errorf("ENI %d has table %d", i, table)
			}
			if marks[mark] || mark&^mask != 0 {
				t.Errorf("ENI %d has mark %#x of mask %#x", i, mark, mask)
			}
			tables[table], marks[mark] = true, true
		}
	}
}

func TestObjectsPrintAsIPTakesThem(t *testing.T) {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	for _, tt := range []struct {
		object fmt.Stringer
		want   string
	}{
		{Addr{Prefix: p("10.0.0.11/32"), Dev: "eth0"}, "10.0.0.11/32 dev eth0"},
		{Addr{Prefix: p("10.0.1.10/24"), Dev: "eth1", NoPrefixRoute: true}, "10.0.1.10/24 dev eth1 noprefixroute"},
		{Route{Dst: p("0.0.0.0/0"), Gateway: a("10.0.0.1"), Dev: "eth0", Table: 254}, "default via 10.0.0.1 dev eth0 proto 69"},
		{Route{Dst: p("::/0"), Gateway: a("fe80::1"), Dev: "eth1", Table: 101}, "default via fe80::1 dev eth1 table 101 proto 69"},
		{Route{Dst: p("10.0.0.11/32"), Dev: "eni0", Table: 254}, "10.0.0.11 dev eni0 proto 69 scope link"},
		{Route{Dst: p("10.0.0.0/24"), Dev: "eni0", Table: 254}, "10.0.0.0/24 dev eni0 proto 69 scope link"},
		{Route{Dst: p("10.0.0.11/32"), Dev: "eni0", Table: PodsTable}, "10.0.0.11 dev eni0 table 100 proto 70 scope link"},
		{Rule{Priority: 512, Table: PodsTable, HostOnly: true}, "512: from all lookup 100 suppress_prefixlength 31 proto 70"},
		{Rule{Priority: 512, Table: 254, HostOnly: true}, "512: from all lookup main suppress_prefixlength 31 proto 69"},
		{Rule{Priority: 512, Table: 254, HostOnly: true, IPv6: true}, "512: from all lookup main suppress_prefixlength 127 proto 69"},
		{Rule{Priority: 1536, Mark: 0x1, Mask: 0xff, Table: 101}, "1536: from all fwmark 0x1/0xff lookup 101 proto 70"},
		{Rule{Priority: 1538, From: p("10.0.0.11/32"), To: p("10.0.0.0/16"), Table: 101}, "1538: from 10.0.0.11 to 10.0.0.0/16 lookup 101 proto 69"},
		{Rule{Priority: 1538, From: p("10.0.0.0/24"), To: p("10.1.2.3/32"), Table: 101}, "1538: from 10.0.0.0/24 to 10.1.2.3 lookup 101 proto 69"},
		{Neigh{Addr: a("fe80::1"), MAC: MAC{2, 0, 0, 0, 0xab, 9}, Dev: "eth0"}, "fe80::1 lladdr 02:00:00:00:ab:09 dev eth0 nud permanent"},
		{Sysctl{"net/ipv4/conf/eth0.5/rp_filter", "2"}, "net/ipv4/conf/eth0.5/rp_filter=2"},
	} {
		if diff := cmp.Diff(tt.want, tt.object.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAHostDeviceIsALinkNameOfItsOwn(t *testing.T) {
	seen := map[string]eni.Key{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9._-]{0,70}`), rapid.String())
		k := eni.Key{Network: name.Draw(t, "network"), Container: name.Draw(t, "container"), IfName: name.Draw(t, "ifname")}
		dev := HostDevice(k)
		if err := eni.ValidDevice(dev); err != nil || !strings.HasPrefix(dev, VethPrefix) {
			t.Fatalf("%s: %v", dev, err)
		}
		if dev != HostDevice(k) {
			t.Fatal("the name changes")
		}
		if other, ok := seen[dev]; ok && other != k && !strings.ContainsRune(k.Network+k.Container, '|') {
			t.Fatalf("%q and %q are both %s", k, other, dev)
		}
		seen[dev] = k
	})
	// Links of pods that run must be found after an upgrade: the name is for ever.
	if got := HostDevice(eni.Key{Network: "pods", Container: "3f2a", IfName: "eth0"}); got != "eniba3b32d3853" {
		t.Errorf("got %s", got)
	}
	for i := range 100_000 {
		k := eni.Key{Network: "pods", Container: fmt.Sprint(i), IfName: "eth0"}
		if other, ok := seen[HostDevice(k)]; ok && other != k {
			t.Errorf("%q and %q are both %s", k, other, HostDevice(k))
		}
		seen[HostDevice(k)] = k
	}
}

func TestMACsAreUnicastAndLocal(t *testing.T) {
	s := settings(nil)
	for i := range 2000 {
		l := ipam.Lease{Interface: nic(0, true, false), Addresses: used(0, "10.0.0.11")}
		l.Addresses[0].Owner.Container = fmt.Sprint(i)
		p := NewPod(s, l, 0)
		for _, m := range []MAC{p.MAC, p.HostMAC} {
			if m[0]&1 != 0 || m[0]&2 == 0 {
				t.Fatalf("%s is not unicast and local", m)
			}
		}
		if p.MAC == p.HostMAC {
			t.Fatalf("both ends of %s have %s", p.HostDev, p.MAC)
		}
	}
}

func TestAnAliasReadsBack(t *testing.T) {
	for _, tt := range []struct {
		owner eni.Owner
		alias string
	}{
		{eni.Owner{Key: eni.Key{Network: "pods", Container: "3f2a", IfName: "eth0"}, Namespace: "default", Pod: "web-0"},
			"default/web-0 pods/3f2a/eth0"},
		{eni.Owner{Key: eni.Key{Network: "pods", Container: "3f2a", IfName: "eth0"}, Pod: "web-0"}, "web-0 pods/3f2a/eth0"},
		{eni.Owner{Key: eni.Key{Network: "pods", Container: "3f2a", IfName: "eth0"}}, "3f2a pods/3f2a/eth0"},
	} {
		if diff := cmp.Diff(tt.alias, Alias(tt.owner)); diff != "" {
			t.Error(diff)
		}
		got, ok := ParseAlias(tt.alias)
		if diff := cmp.Diff(tt.owner, got); diff != "" || !ok {
			t.Errorf("%t: %s", ok, diff)
		}
	}
	for _, alias := range []string{"", "uplink", "to the switch", "default/web-0", "web pods/3f2a", "web a/b/c/d"} {
		if o, ok := ParseAlias(alias); ok {
			t.Errorf("%q is %+v", alias, o)
		}
	}
}

// TestAnAliasKeepsWhatIdentifies: the pod's names may be cut or be anything, the
// key comes back as it was, or not at all when it has no room.
func TestAnAliasKeepsWhatIdentifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// What CNI allows in these.
		name := func(longest int) *rapid.Generator[string] {
			return rapid.StringMatching(fmt.Sprintf(`[a-zA-Z0-9][a-zA-Z0-9_.-]{0,%d}`, longest-1))
		}
		o := eni.Owner{
			Key: eni.Key{Network: rapid.OneOf(name(20), name(200)).Draw(t, "network"), Container: rapid.OneOf(name(64), name(150)).Draw(t, "container"),
				IfName: name(15).Draw(t, "ifname")},
			// CNI_ARGS are free text.
			Namespace: rapid.OneOf(name(63), rapid.String(), rapid.Just(strings.Repeat("n", 300))).Draw(t, "namespace"),
			Pod:       rapid.OneOf(name(63), rapid.String(), rapid.Just("a b"), rapid.Just(strings.Repeat("p", 300))).Draw(t, "pod"),
		}
		alias := Alias(o)
		if len(alias) > aliasLimit {
			t.Fatalf("the kernel refuses an alias of %d bytes", len(alias))
		}
		got, ok := ParseAlias(alias)
		if fits := len(" "+o.Key.String()) <= aliasLimit; ok != fits {
			t.Fatalf("%q reads back: %t, fits: %t", alias, ok, fits)
		}
		if ok && got.Key != o.Key {
			t.Fatalf("%q is of %q, want %q", alias, got.Key, o.Key)
		}
	})
}

func TestALimitIsRestoredFromItsBucket(t *testing.T) {
	for _, l := range []Limit{{8, 8}, {8e6, 8e6}, {80000000, 8000}, {999_999_992, 24}, {40e9, 1 << 30}} {
		if got := l.Bucket().Restored(); got != l {
			t.Errorf("%v comes back as %v", l, got)
		}
	}
}

func TestLimitsAreTheSameOnceTheKernelHasThem(t *testing.T) {
	for _, l := range []Limit{{12345671, 8000003}, {1000000, 2147483647}, {8, 8*(1<<32-1) - 1}, {40e9, 8*(1<<32-1) - 1}, {}} {
		asked := Limits{Ingress: l, Egress: l}
		rebuilt := Limits{Ingress: l.Bucket().Restored(), Egress: l.Bucket().Restored()}
		if !asked.Same(rebuilt) {
			t.Errorf("%v comes back as %v, which is another", asked, rebuilt)
		}
		for _, other := range []Limits{{Ingress: l}, {Egress: l}, {Limit{l.Rate + 8, l.Burst}, l}, {l, Limit{l.Rate + 8, l.Burst}}} {
			if l != (Limit{}) && asked.Same(other) {
				t.Errorf("%v and %v are the same", asked, other)
			}
		}
		if l.Burst == 8000003 && asked.Same(Limits{Limit{l.Rate, l.Burst + 8}, l}) {
			t.Errorf("%v with another burst is the same", asked)
		}
	}
}
