package ipam

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func TestWhatADamagedRecordMayHaveBeenOfRests(t *testing.T) {
	addr := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	nodeState := func(states ...eni.State) *State {
		s := &State{Settings: Settings{CoolDown: 30 * time.Second, Families: []eni.Family{eni.IPv4}}}
		for n, state := range states {
			a := eni.Address{Addr: addr(byte(n)), State: state, Since: time.Second}
			if state == eni.Used {
				a.Owner = &eni.Owner{}
			}
			s.Addresses = append(s.Addresses, a)
		}
		return s
	}
	old := nodeState(eni.Free, eni.Used)
	old.Damaged = []Damage{{Record: 2, Addr: addr(77)}} // what it says may be wrong
	for what, tt := range map[string]struct {
		old  *State
		want []netip.Addr
	}{
		"no old state":        {nil, nil},
		"a sound old state":   {nodeState(eni.Free), nil},
		"a damaged old state": {old, []netip.Addr{addr(2), addr(5)}},
		"a record of another": {&State{Damaged: old.Damaged}, []netip.Addr{addr(0), addr(2), addr(5)}},
	} {
		s := nodeState(eni.Free, eni.Used, eni.Free, eni.Used, eni.Releasing, eni.Free)
		const now = 100 * time.Second
		s.Distrust(tt.old, now)
		var got []netip.Addr
		for _, a := range s.inState(eni.Cooling) {
			got = append(got, a.Addr)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v rest, want %v", what, got, tt.want)
		}
		if c, soon := s.Count(now, nil), s.Count(now+30*time.Second, nil); c.Free != 3-len(tt.want) || soon.Free != 3 {
			t.Errorf("%s: %d are free now, and %d after the cool-down", what, c.Free, soon.Free)
		}
	}
}

// The kernel shows nothing of the pods of bridge or macvlan: their record is all there is.
func TestAPodOfAnotherPluginKeepsTheAddressThatADamagedRecordNames(t *testing.T) {
	owner := func(name string, kind eni.Kind) *eni.Owner {
		return &eni.Owner{Key: eni.Key{Network: "pods", Container: name, IfName: "eth0"}, Kind: kind}
	}
	addrs := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}
	for what, tt := range map[string]struct {
		damaged []Damage
		want    string
	}{
		"of both families":        {[]Damage{{Addr: addrs[1], Owner: owner("a", eni.Delegated)}, {Addr: addrs[2], Owner: owner("a", eni.Delegated)}}, "[used by b, used by a, used by a]"},
		"of enipool's own pod":    {[]Damage{{Addr: addrs[1], Owner: owner("a", eni.Veth)}}, "[used by b, cooling, cooling]"},
		"which has another":       {[]Damage{{Addr: addrs[1], Owner: owner("b", eni.Delegated)}}, "[used by b, cooling, cooling]"},
		"an address that is used": {[]Damage{{Addr: addrs[0], Owner: owner("a", eni.Delegated)}}, "[used by b, cooling, cooling]"},
		"none that can be read":   {[]Damage{{Owner: owner("a", eni.Delegated)}}, "[used by b, cooling, cooling]"},
	} {
		s := &State{Addresses: []eni.Address{{Addr: addrs[0], State: eni.Used, Owner: owner("b", eni.Veth)}, {Addr: addrs[1]}, {Addr: addrs[2]}}}
		s.Distrust(&State{Damaged: tt.damaged}, time.Second)
		var got []string
		for _, a := range s.Addresses {
			text := a.State.String()
			if a.Owner != nil {
				text += " by " + a.Owner.Container
			}
			got = append(got, text)
		}
		if text := "[" + strings.Join(got, ", ") + "]"; text != tt.want {
			t.Errorf("%s: %s, want %s", what, text, tt.want)
		}
	}
}
