package eni

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAStateReadsBackAsItPrints(t *testing.T) {
	for want, name := range map[State]string{Free: "free", Used: "used", Cooling: "cooling", Releasing: "releasing", Held: "held"} {
		if want.String() != name {
			t.Errorf("state %d prints as %q, want %q", uint8(want), want, name)
		}
		if got, err := ParseState(name); err != nil || got != want {
			t.Errorf("ParseState(%q) = %v, %v", name, got, err)
		}
	}
}

func TestAKindReadsBackAsItPrints(t *testing.T) {
	for want, name := range map[Kind]string{Veth: "veth", Chained: "chained", Delegated: "ipam"} {
		if want.String() != name {
			t.Errorf("kind %d prints as %q, want %q", uint8(want), want, name)
		}
		if got, err := ParseKind(name); err != nil || got != want {
			t.Errorf("ParseKind(%q) = %v, %v", name, got, err)
		}
	}
}

func TestUnknownNamesAreNamed(t *testing.T) {
	for _, name := range []string{"", "Free", "free ", "state(5)"} {
		_, err := ParseState(name)
		if diff := cmp.Diff(fmt.Sprintf("unknown address state %q", name), fmt.Sprint(err)); diff != "" {
			t.Error(diff)
		}
	}
	for _, name := range []string{"", "Veth", "delegated", "kind(3)"} {
		_, err := ParseKind(name)
		if diff := cmp.Diff(fmt.Sprintf("unknown attachment kind %q", name), fmt.Sprint(err)); diff != "" {
			t.Error(diff)
		}
	}
	if State(9).String() != "state(9)" || Kind(9).String() != "kind(9)" {
		t.Errorf("numbers without a name print as %s and %s", State(9), Kind(9))
	}
}

func TestAnOwnerIsCalledByItsPodWhereOneIsKnown(t *testing.T) {
	key := Key{Network: "pods", Container: "3f2a", IfName: "eth0"}
	for _, tt := range []struct {
		owner Owner
		want  string
	}{
		{Owner{Key: key, Namespace: "default", Pod: "web-0"}, "default/web-0"},
		{Owner{Key: key, Pod: "web-0"}, "web-0"},
		{Owner{Key: key, Namespace: "default"}, "3f2a"},
		{Owner{}, "-"},
	} {
		if got := tt.owner.PodName(); got != tt.want {
			t.Errorf("PodName of %+v = %q, want %q", tt.owner, got, tt.want)
		}
	}
	if got := key.String(); got != "pods/3f2a/eth0" {
		t.Errorf("key prints as %q", got)
	}
}

func TestAnAddressIsAHostPrefixOfItsFamily(t *testing.T) {
	for _, tt := range []struct {
		addr, prefix string
		family       Family
	}{
		{"10.0.0.11", "10.0.0.11/32", IPv4},
		{"2001:db8::11", "2001:db8::11/128", IPv6},
	} {
		a := Address{Addr: netip.MustParseAddr(tt.addr)}
		if a.Prefix().String() != tt.prefix || a.Family() != tt.family {
			t.Errorf("%s is %s of %s, want %s of %s", tt.addr, a.Prefix(), a.Family(), tt.prefix, tt.family)
		}
	}
}
