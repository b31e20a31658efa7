package eni

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good is an interface that nothing is wrong with.
func good() Interface {
	return Interface{ID: "eni-a", Index: 1, Device: "eth1", MTU: 1500,
		V4: Net{Primary: netip.MustParsePrefix("10.0.0.20/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
		V6: Net{Primary: netip.MustParsePrefix("2001:db8::20/64"), Gateway: netip.MustParseAddr("fe80::1")}}
}

func TestAnInterfaceOnItsOwnIsRight(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Interface)
	}{
		{"dual-stack", func(*Interface) {}},
		{"IPv4 only", func(i *Interface) { i.V6 = Net{} }},
		{"IPv6 only", func(i *Interface) { i.V4 = Net{} }},
		{"the highest index", func(i *Interface) { i.Index = MaxIndex }},
		{"the smallest MTU", func(i *Interface) { i.MTU = 576 }},
		{"the largest MTU", func(i *Interface) { i.MTU = 65535 }},
		{"a link name of 15 bytes", func(i *Interface) { i.Device = "enp0s31f6.12345" }},
		{"a range for pods", func(i *Interface) { i.Pods = []netip.Prefix{netip.MustParsePrefix("10.64.0.0/24")} }},
		{"an IPv4 router that is link-local", func(i *Interface) { i.V4.Gateway = netip.MustParseAddr("169.254.0.1") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := good()
			tt.change(&i)
			if err := i.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateNamesTheENIAndWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Interface)
		want   string
	}{
		{"no id", func(i *Interface) { i.ID = "" }, `eni : id "": must be one word`},
		{"two words", func(i *Interface) { i.ID = "a b" }, `eni a b: id "a b": must be one word`},
		{"index below", func(i *Interface) { i.Index = -1 }, `eni eni-a: index -1: must be 0 to 150`},
		{"index above", func(i *Interface) { i.Index = 151 }, `eni eni-a: index 151: must be 0 to 150`},
		{"no device", func(i *Interface) { i.Device = "" }, `eni eni-a: device "": must be a link name of 1 to 15 bytes`},
		{"MTU below", func(i *Interface) { i.MTU = 575 }, `eni eni-a: mtu 575: must be 576 to 65535`},
		{"MTU above", func(i *Interface) { i.MTU = 65536 }, `eni eni-a: mtu 65536: must be 576 to 65535`},
		{"no address", func(i *Interface) { i.V4, i.V6 = Net{}, Net{} }, `eni eni-a: primary: an ENI has at least one primary address`},
		{"a range for pods with host bits", func(i *Interface) { i.Pods = []netip.Prefix{netip.MustParsePrefix("10.64.0.7/24")} },
			`eni eni-a: range 10.64.0.7/24: must be one without host bits, of a family that it has a primary address of`},
		{"a range for pods of a family that it has not", func(i *Interface) { i.V6, i.Pods = Net{}, []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/64")} },
			`eni eni-a: range 2001:db8:1::/64: must be one without host bits, of a family that it has a primary address of`},
		{"no gateway", func(i *Interface) { i.V4.Gateway = netip.Addr{} }, `eni eni-a: primary 10.0.0.20/24: has no gateway`},
		{"gateway of the other family", func(i *Interface) { i.V4.Gateway = netip.MustParseAddr("fe80::1") },
			`eni eni-a: gateway fe80::1: is not of the family of primary 10.0.0.20/24`},
		{"own gateway", func(i *Interface) { i.V4.Gateway = i.V4.Primary.Addr() },
			`eni eni-a: gateway 10.0.0.20: is the primary address itself`},
		{"gateway outside", func(i *Interface) { i.V4.Gateway = netip.MustParseAddr("10.0.1.1") },
			`eni eni-a: gateway 10.0.1.1: is outside subnet 10.0.0.0/24`},
		{"everything at once", func(i *Interface) { *i = Interface{ID: "x", Index: 999, Device: "a/b"} },
			"eni x: index 999: must be 0 to 150\n" +
				`device "a/b": must be a link name of 1 to 15 bytes` + "\n" +
				"mtu 0: must be 576 to 65535\n" +
				"primary: an ENI has at least one primary address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := good()
			tt.change(&i)
			err := i.Validate()
			if err == nil {
				t.Fatal("Validate found nothing")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALinkNameIsWhatTheKernelTakes(t *testing.T) {
	for _, name := range []string{"eth0", "ens5", "a", "eth0.100", "...", strings.Repeat("x", 15)} {
		if err := ValidDevice(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "a:b", "a b", "a\tb", "a\n", strings.Repeat("x", 16)} {
		if ValidDevice(name) == nil {
			t.Errorf("ValidDevice(%q) = nil", name)
		}
	}
}

func TestFamilies(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	if got := FamilyOf(v4); got != IPv4 || got.String() != "ipv4" || got.Bits() != 32 {
		t.Errorf("FamilyOf(%s) = %s of %d bits", v4, got, got.Bits())
	}
	if got := FamilyOf(v6); got != IPv6 || got.String() != "ipv6" || got.Bits() != 128 {
		t.Errorf("FamilyOf(%s) = %s of %d bits", v6, got, got.Bits())
	}
	i := good()
	if i.Net(IPv4) != i.V4 || i.Net(IPv6) != i.V6 {
		t.Error("Net gives the other family's")
	}
	if diff := cmp.Diff("[{10.0.0.20/24 10.0.0.1} {2001:db8::20/64 fe80::1}]", fmt.Sprint(i.Nets())); diff != "" {
		t.Error(diff)
	}
	i.V4 = Net{}
	if diff := cmp.Diff("[{2001:db8::20/64 fe80::1}]", fmt.Sprint(i.Nets())); diff != "" {
		t.Error(diff)
	}
}
