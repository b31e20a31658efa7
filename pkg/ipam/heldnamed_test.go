package ipam

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// Whoever frees what others hold must know all of it, not the first one at a time.
func TestExhaustionNamesHeldAddresses(t *testing.T) {
	for held, want := range map[int]string{
		0: "0 cooling",
		1: ", 1 held by others (10.0.0.1: route 1)",
		2: ", 2 held by others (10.0.0.1: route 1; 10.0.0.2: route 2)",
		3: ", 3 held by others (10.0.0.1: route 1; 10.0.0.2: route 2; 10.0.0.3: route 3)",
		5: ", 5 held by others (10.0.0.1: route 1; 10.0.0.2: route 2; 10.0.0.3: route 3; and 2 more)",
	} {
		s := &State{Settings: Settings{Families: []eni.Family{eni.IPv4}}, ENIs: []eni.Interface{{ID: "a", Device: "eth0"}}}
		causes := map[netip.Addr]string{}
		for i := range held {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
			s.Addresses = append(s.Addresses, eni.Address{Addr: a})
			causes[a] = fmt.Sprintf("route %d", i+1)
		}
		s.MarkHeld(causes, 0)
		if _, err := s.AssignPod(eni.Owner{}, "", 0); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d held: %v, want %s", held, err, want)
		}
	}
	// A cause that is not known names nothing, but counts.
	s := &State{Settings: Settings{Families: []eni.Family{eni.IPv4}}, ENIs: []eni.Interface{{ID: "a", Device: "eth0"}}, Addresses: []eni.Address{
		{Addr: netip.MustParseAddr("10.0.0.1"), State: eni.Held}, {Addr: netip.MustParseAddr("10.0.0.2"), State: eni.Held, HeldBy: "route"}}}
	if got := s.Exhaust("", 0).Error(); !strings.Contains(got, "2 held by others (10.0.0.2: route; and 1 more)") {
		t.Error(got)
	}
}
