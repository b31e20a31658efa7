package nodecache

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

var heldAddress = eni.Address{Addr: netip.MustParseAddr("10.0.0.23"), ENI: 1, State: eni.Held, Since: 1234567 * time.Millisecond,
	HeldBy: "route 10.0.0.23 dev eni5f3 scope link (table main)"}

// TestAHeldAddressCoolsForEverForAReaderOfBefore: such a reader takes the first four
// words of a line that is not used, and hands a cooling address out when since and
// cool-down have passed. None may see a state that it does not know: to it the record
// would be damaged.
func TestAHeldAddressCoolsForEverForAReaderOfBefore(t *testing.T) {
	text, err := encodeAddress(&heldAddress)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "10.0.0.23                1 cooling   4294967295.000 held 1234.567 route 10.0.0.23 dev eni5f3 scope link (table main)"
	if diff := cmp.Diff(golden, text); diff != "" {
		t.Fatal(diff)
	}
	since, err := decodeSince([]byte(strings.Fields(text)[3]))
	if err != nil {
		t.Fatal(err)
	}
	if end := since + 100*365*24*time.Hour; since < 100*365*24*time.Hour || end < since {
		t.Errorf("it cools until %s after the boot", end)
	}
}

func TestAHeldAddressReadsBackWhoeverWroteItLast(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want eni.Address
	}{
		"this writer": {"10.0.0.23 1 cooling 4294967295.000 held 1234.567 route 10.0.0.23 dev eni5f3 scope link (table main)", heldAddress},
		"a writer of before, which knows no cause": {"10.0.0.23                1 cooling   4294967295.000",
			eni.Address{Addr: heldAddress.Addr, ENI: 1, State: eni.Held}},
		"a later writer with another word": {"10.0.0.23 1 cooling 4294967295.000 later word",
			eni.Address{Addr: heldAddress.Addr, ENI: 1, State: eni.Held}},
		"one that just cools": {"10.0.0.23 1 cooling 4294967294.999 held 1.000 nobody",
			eni.Address{Addr: heldAddress.Addr, ENI: 1, State: eni.Cooling, Since: 4294967294999 * time.Millisecond}},
	} {
		var got eni.Address
		if err := decodeAddress([]byte(tt.text), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(show(tt.want), show(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAHeldAddressStaysHeldInTheFile(t *testing.T) {
	s := pool(2)
	c := newCache(t, s)
	first, second := s.Addresses[0].Addr, s.Addresses[1].Addr
	hold := func(s *ipam.State) error {
		s.MarkHeld(map[netip.Addr]string{first: "rule 1536: from 10.0.0.1 lookup 2"}, time.Minute)
		return nil
	}
	if err := c.For(key("web")).Update(t.Context(), hold); err != nil {
		t.Fatal(err)
	}
	if got, err := pick(c, "web"); err != nil || got != second {
		t.Errorf("the next address is %s, %v; want %s", got, err, second)
	}
	_, err := pick(c, "db")
	var none *ipam.Exhausted
	if !errors.As(err, &none) || none.Held != 1 || !strings.Contains(err.Error(), "1 held by others ("+first.String()+": rule 1536") {
		t.Errorf("a pool of which others hold the rest: %v", err)
	}
	// The whole file written again keeps it, cause and all.
	if err := c.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) { return s, err }); err != nil {
		t.Fatal(err)
	}
	if held := get(t, c).HeldAddresses(); len(held) != 1 || held[0].HeldBy != "rule 1536: from 10.0.0.1 lookup 2" || held[0].Since != time.Minute {
		t.Errorf("held: %+v", held)
	}
}
