package ipam

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

func TestAssignTakesTheEarliestENIAndThereTheAddressFreeTheLongest(t *testing.T) {
	v4, dual := []eni.Family{eni.IPv4}, []eni.Family{eni.IPv4, eni.IPv6}
	for _, tt := range []struct {
		name     string
		families []eni.Family
		device   string
		state    string
		want     string
	}{
		{"the first line of a fresh pool", v4, "", `
			10.0.0.11 0 free 0
			10.0.0.12 0 free 0
			10.0.0.21 1 free 0`,
			"10.0.0.11"},
		{"free the longest, wherever it stands", v4, "", `
			10.0.0.11 0 free 50
			10.0.0.12 0 free 20
			10.0.0.13 0 free 30`,
			"10.0.0.12"},
		{"an earlier ENI comes before an older address", v4, "", `
			10.0.0.11 0 used 10 web
			10.0.0.12 0 free 90
			10.0.0.21 1 free 1`,
			"10.0.0.12"},
		{"the next ENI when the first is full", v4, "", `
			10.0.0.11 0 used 10 web
			10.0.0.21 1 free 1`,
			"10.0.0.21"},
		{"a cooled address is free at the second it has cooled", v4, "", `
			10.0.0.11 0 cooling 70
			10.0.0.21 1 free 0`,
			"10.0.0.11"},
		{"not one second before", v4, "", `
			10.0.0.11 0 cooling 71
			10.0.0.21 1 free 0`,
			"10.0.0.21"},
		{"a cooled address is free since it has cooled, not since it was released", v4, "", `
			10.0.0.11 0 cooling 40
			10.0.0.12 0 free 60`,
			"10.0.0.12"},
		{"what is on its way back to the cloud stays away", v4, "", `
			10.0.0.11 0 releasing 0
			10.0.0.21 1 free 90`,
			"10.0.0.21"},
		{"a device names its ENI", v4, "eth1", `
			10.0.0.11 0 free 0
			10.0.0.21 1 free 90`,
			"10.0.0.21"},
		{"both families come from one ENI", dual, "", `
			10.0.0.11 0 free 0
			10.0.0.12 0 free 0
			10.0.0.21 1 free 90
			2001:db8::21 1 free 95`,
			"10.0.0.21 2001:db8::21"},
		{"both families, each the oldest of its own", dual, "", `
			2001:db8::11 0 free 9
			10.0.0.11 0 free 8
			2001:db8::12 0 free 7
			10.0.0.12 0 free 9`,
			"10.0.0.11 2001:db8::12"},
		{"the families come in the order of the settings", []eni.Family{eni.IPv6, eni.IPv4}, "", `
			10.0.0.11 0 free 0
			2001:db8::11 0 free 0`,
			"2001:db8::11 10.0.0.11"},
		{"an IPv6 pool hands out no IPv4", []eni.Family{eni.IPv6}, "", `
			10.0.0.11 0 free 0
			2001:db8::11 0 free 90`,
			"2001:db8::11"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := nodeState(t, 2, tt.state, tt.families...)
			l, err := s.AssignPod(owner("new"), tt.device, sec(100))
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for i, a := range l.Addresses {
				if i > 0 {
					got += " "
				}
				got += a.Addr.String()
				if a.State != eni.Used || a.Since != sec(100) || a.Owner.Key != key("new") || a.ENI != l.Interface.Index {
					t.Errorf("lease holds %+v of ENI %d", a, l.Interface.Index)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(show(l.Addresses), show(inOrder(s.OwnedBy(key("new")), l.Addresses))); diff != "" {
				t.Errorf("the node state and the lease differ: %s", diff)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// inOrder sorts found as order.
func inOrder(found, order []eni.Address) []eni.Address {
	at := func(a eni.Address) int {
		return slices.IndexFunc(order, func(o eni.Address) bool { return o.Addr == a.Addr })
	}
	slices.SortFunc(found, func(a, b eni.Address) int { return at(a) - at(b) })
	return found
}

func TestAnExhaustedPoolSaysWhyInNumbers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		families []eni.Family
		device   string
		damaged  []Damage
		state    string
		want     string
	}{
		{"all used", nil, "", nil, `
			10.0.0.11 0 used 10 web
			10.0.0.21 1 used 10 db`,
			"no free ipv4 address: 2 addresses on 2 ENIs, 2 used, 0 cooling"},
		{"an empty pool", nil, "", nil, ``,
			"no free ipv4 address: 0 addresses on 2 ENIs, 0 used, 0 cooling"},
		{"some cool", nil, "", nil, `
			10.0.0.11 0 used 10 web
			10.0.0.12 0 cooling 99
			10.0.0.21 1 cooling 82`,
			"no free ipv4 address: 3 addresses on 2 ENIs, 1 used, 2 cooling (next free in 12s)"},
		{"some on their way out, some damaged", nil, "", []Damage{{Record: 0}, {Record: 4}}, `
			10.0.0.11 0 used 10 web
			10.0.0.12 0 releasing 10`,
			"no free ipv4 address: 2 addresses on 2 ENIs, 1 used, 0 cooling, 1 releasing, 2 with a damaged record"},
		{"one device is full, others are not", nil, "eth1", nil, `
			10.0.0.11 0 free 10
			10.0.0.21 1 used 10 web`,
			"no free ipv4 address on eth1: 1 addresses on 1 ENIs, 1 used, 0 cooling"},
		{"a device that is no ENI", nil, "docker0", nil, `
			10.0.0.11 0 free 10`,
			"no free ipv4 address on docker0: 0 addresses on 0 ENIs, 0 used, 0 cooling"},
		{"no ENI has both families", []eni.Family{eni.IPv4, eni.IPv6}, "", nil, `
			10.0.0.11 0 free 10
			2001:db8::11 0 used 10 web
			2001:db8::21 1 free 10`,
			"no ENI with a free address of each of ipv4+ipv6: 3 addresses on 2 ENIs: ipv4 0 used, 0 cooling, 1 free; ipv6 1 used, 0 cooling, 1 free"},
		{"one family lacks", []eni.Family{eni.IPv4, eni.IPv6}, "", nil, `
			10.0.0.11 0 used 10 web
			10.0.0.12 0 free 10
			2001:db8::11 0 used 10 web
			2001:db8::12 0 cooling 82`,
			"no free ipv6 address: 4 addresses on 2 ENIs: ipv4 1 used, 0 cooling, 1 free; ipv6 1 used, 1 cooling (next free in 12s)"},
		{"both families lack", []eni.Family{eni.IPv4, eni.IPv6}, "", nil, `
			10.0.0.11 0 used 10 web
			2001:db8::11 0 used 10 web`,
			"no free ipv4+ipv6 address: 2 addresses on 2 ENIs: ipv4 1 used, 0 cooling; ipv6 1 used, 0 cooling"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := nodeState(t, 2, tt.state, tt.families...)
			s.Damaged = tt.damaged
			_, err := s.AssignPod(owner("new"), tt.device, sec(100))
			var exhausted *Exhausted
			if !errors.As(err, &exhausted) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(text(tt.state), show(s.Addresses)); diff != "" || len(s.Touched()) != 0 {
				t.Errorf("the node state changed: %s", diff)
			}
		})
	}
}

func TestAnOwnerGetsOneAddressOnly(t *testing.T) {
	s := nodeState(t, 1, `
		10.0.0.11 0 used 10 web
		10.0.0.12 0 free 0`)
	_, err := s.AssignPod(owner("web"), "", sec(100))
	if !errors.Is(err, ErrDuplicate) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff("pods/web/eth0 already holds an address: 10.0.0.11", err.Error()); diff != "" {
		t.Error(diff)
	}
	// The same pod in a second sandbox is another owner: the two may overlap.
	second := owner("web2")
	second.Pod = "web"
	if _, err := s.AssignPod(second, "", sec(100)); err != nil {
		t.Error(err)
	}
}

func TestReleasedAddressesCool(t *testing.T) {
	s := nodeState(t, 1, `
		10.0.0.11 0 used 10 web
		2001:db8::11 0 used 10 web
		10.0.0.12 0 used 10 db
		10.0.0.13 0 free 5`, eni.IPv4, eni.IPv6)
	released := s.Free(key("web"), sec(100))
	if diff := cmp.Diff(text(`
		10.0.0.11 0 used 10 web
		2001:db8::11 0 used 10 web`), show(released)); diff != "" {
		t.Errorf("released: %s", diff)
	}
	if diff := cmp.Diff(text(`
		10.0.0.11 0 cooling 100
		2001:db8::11 0 cooling 100
		10.0.0.12 0 used 10 db
		10.0.0.13 0 free 5`), show(s.Addresses)); diff != "" {
		t.Errorf("state: %s", diff)
	}
	if diff := cmp.Diff([]int{0, 1}, s.Touched()); diff != "" {
		t.Errorf("touched: %s", diff)
	}
	if again := s.Free(key("web"), sec(120)); len(again) != 0 || s.Addresses[0].Since != sec(100) {
		t.Errorf("a repeated release released %v and the address cools since %s", again, s.Addresses[0].Since)
	}
}

func TestReleaseIfAsksForUsedAddressesOnly(t *testing.T) {
	s := nodeState(t, 1, `
		10.0.0.11 0 used 10 web
		10.0.0.12 0 used 10 db
		10.0.0.13 0 free 5
		10.0.0.14 0 cooling 5
		10.0.0.15 0 releasing 5`)
	var asked []string
	s.FreeIf(func(a eni.Address) bool {
		asked = append(asked, a.Owner.Pod)
		return a.Owner.Pod == "db"
	}, sec(100))
	if diff := cmp.Diff([]string{"web", "db"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(text(`
		10.0.0.11 0 used 10 web
		10.0.0.12 0 cooling 100
		10.0.0.13 0 free 5
		10.0.0.14 0 cooling 5
		10.0.0.15 0 releasing 5`), show(s.Addresses)); diff != "" {
		t.Error(diff)
	}
}

func TestUndoIsAsIfNothingHadBeen(t *testing.T) {
	before := text(`
		10.0.0.11 0 cooling 60
		2001:db8::11 0 free 5
		10.0.0.12 0 used 10 db`)
	s := nodeState(t, 1, before, eni.IPv4, eni.IPv6)
	l, err := s.AssignPod(owner("web"), "", sec(100))
	if err != nil {
		t.Fatal(err)
	}
	s.UndoLease(l)
	if diff := cmp.Diff(before, show(s.Addresses)); diff != "" {
		t.Error(diff)
	}
	s.UndoLease(l)
	if diff := cmp.Diff(before, show(s.Addresses)); diff != "" {
		t.Errorf("a second Undo: %s", diff)
	}
}

func TestUndoLeavesWhatAnotherOwnerGotSince(t *testing.T) {
	s := nodeState(t, 1, `10.0.0.11 0 free 5`)
	l, err := s.AssignPod(owner("web"), "", sec(100))
	if err != nil {
		t.Fatal(err)
	}
	s.Free(key("web"), sec(101))
	if _, err := s.AssignPod(owner("db"), "", sec(200)); err != nil {
		t.Fatal(err)
	}
	s.UndoLease(l)
	if diff := cmp.Diff("10.0.0.11 0 used 200 db\n", show(s.Addresses)); diff != "" {
		t.Error(diff)
	}
}

func TestALeaseThatIsOnlyHeldCannotBeUndone(t *testing.T) {
	s := nodeState(t, 2, `
		10.0.0.11 0 free 5
		10.0.0.21 1 used 10 web`)
	l := s.LeaseOf(key("web"))
	if l.Interface.ID != "eni-b" || show(l.Addresses) != "10.0.0.21 1 used 10 web\n" {
		t.Errorf("web holds %s of %s", show(l.Addresses), l.Interface.ID)
	}
	s.UndoLease(l)
	if diff := cmp.Diff("10.0.0.21 1 used 10 web\n", show(s.Used())); diff != "" {
		t.Error(diff)
	}
	if l := s.LeaseOf(key("nobody")); len(l.Addresses) != 0 {
		t.Errorf("nobody holds %s", show(l.Addresses))
	}
}

func TestCountSumsUp(t *testing.T) {
	s := nodeState(t, 2, `
		10.0.0.11 0 used 10 web
		10.0.0.12 0 free 10
		10.0.0.13 0 cooling 70
		10.0.0.14 0 cooling 71
		10.0.0.21 1 cooling 80
		10.0.0.22 1 releasing 80`)
	if diff := cmp.Diff(Count{Total: 6, Free: 2, Used: 1, Cooling: 2, Releasing: 1, NextFree: sec(1)}, s.Count(sec(100), nil)); diff != "" {
		t.Error(diff)
	}
	second := func(a eni.Address) bool { return a.ENI == 1 }
	if diff := cmp.Diff(Count{Total: 2, Cooling: 1, Releasing: 1, NextFree: sec(10)}, s.Count(sec(100), second)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Count{}, new(State).Count(sec(100), nil)); diff != "" {
		t.Error(diff)
	}
}

func TestModesReadBackAsTheyPrint(t *testing.T) {
	for want, name := range map[Routing]string{Map: "map", Rule: "rule"} {
		if got, err := ParseRouting(name); err != nil || got != want || want.String() != name {
			t.Errorf("ParseRouting(%q) = %s, %v", name, got, err)
		}
	}
	for want, name := range map[Firewall]string{Nftables: "nftables", Iptables: "iptables"} {
		if got, err := ParseFirewall(name); err != nil || got != want || want.String() != name {
			t.Errorf("ParseFirewall(%q) = %s, %v", name, got, err)
		}
	}
	_, err1 := ParseRouting("Map")
	_, err2 := ParseFirewall("")
	if diff := cmp.Diff(`unknown routing mode "Map": must be map or rule; unknown firewall "": must be nftables or iptables`,
		fmt.Sprintf("%v; %v", err1, err2)); diff != "" {
		t.Error(diff)
	}
}
