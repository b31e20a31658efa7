package netconf

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// held is a pool of 10.0.1.1 to 10.0.1.4: .1 is the pod a's, .2 is the pod b's by
// another plugin's interface, .3 is free, .4 too.
func heldPool() *ipam.State {
	owner := func(name string, kind eni.Kind) *eni.Owner {
		return &eni.Owner{Key: eni.Key{Network: "pods", Container: name, IfName: "eth0"}, Kind: kind, Namespace: "default", Pod: name}
	}
	s := &ipam.State{Settings: settings(nil)}
	for i, o := range []*eni.Owner{owner("a", eni.Veth), owner("b", eni.Chained), nil, nil} {
		a := eni.Address{Addr: netip.MustParseAddr(fmt.Sprintf("10.0.1.%d", i+1)), ENI: 1, Since: 10 * time.Second}
		if o != nil {
			a.State, a.Owner = eni.Used, o
		}
		s.Addresses = append(s.Addresses, a)
	}
	return s
}

func TestWhatOthersHold(t *testing.T) {
	ip := netip.MustParseAddr
	a := eni.Owner{Key: eni.Key{Network: "pods", Container: "a", IfName: "eth0"}, Namespace: "default", Pod: "a"}
	lost := eni.Owner{Key: eni.Key{Network: "pods", Container: "lost", IfName: "eth0"}, Namespace: "default", Pod: "lost"}
	devA, devLost := HostDevice(a.Key), HostDevice(lost.Key)
	for _, tt := range []struct {
		name         string
		o            Occupancy
		held, shared string
	}{
		{name: "nothing"},
		{name: "what is about other addresses", o: Occupancy{
			Addrs:  []Addr{{Prefix: netip.MustParsePrefix("10.0.1.10/24"), Dev: "eth1"}},
			Routes: []HostRoute{{Dst: ip("10.0.0.2"), Dev: "eth0", Table: MainTable, Protocol: 16}}}},
		{name: "a pod of aws-vpc-cni", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.4"), Dev: "eni5f", Table: MainTable, Protocol: 3}},
			Rules:  []HostRule{{Priority: 512, Addr: ip("10.0.1.4"), To: true, Table: MainTable}, {Priority: 1536, Addr: ip("10.0.1.4"), Table: 2}},
			Pods:   []PodEnd{{Dev: "eni5f", Routed: []netip.Addr{ip("10.0.1.4")}}}},
			held: "10.0.1.4: route 10.0.1.4 dev eni5f scope link (table main) and 2 more"},
		{name: "a rule that it left over", o: Occupancy{
			Rules: []HostRule{{Priority: 1536, Addr: ip("10.0.1.3"), Table: 2}}},
			held: "10.0.1.3: rule 1536: from 10.0.1.3 lookup 2"},
		{name: "one like ours by its priority", o: Occupancy{
			Rules: []HostRule{{Priority: PrioritySource, Addr: ip("10.0.1.3"), Table: 102, Protocol: 4}}},
			held: "10.0.1.3: rule 1538: from 10.0.1.3 lookup 102"},
		{name: "rules of ours, stale ones too", o: Occupancy{
			Rules: []HostRule{{Priority: PrioritySource, Addr: ip("10.0.1.3"), Table: 101, Protocol: Protocol}}}},
		{name: "the node's own address", o: Occupancy{
			Addrs:  []Addr{{Prefix: netip.MustParsePrefix("10.0.1.3/24"), Dev: "eth1"}},
			Routes: []HostRoute{{Dst: ip("10.0.1.3"), Dev: "eth1", Type: "local", Table: LocalTable, Protocol: 2}}},
			held: "10.0.1.3: address 10.0.1.3/24 dev eth1"},
		{name: "a route that leads nowhere", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.3"), Type: "blackhole", Table: 7, Protocol: 4}}},
			held: "10.0.1.3: route blackhole 10.0.1.3 (table 7)"},
		{name: "one of ours that leads nowhere", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.3"), Type: "unreachable", Table: PodsTable, Protocol: PodsProtocol}}}},
		{name: "a permanent neighbour", o: Occupancy{
			Neighs: []Neigh{{Addr: ip("10.0.1.4"), MAC: MAC{2, 0, 0, 0, 0, 9}, Dev: "br0"}}},
			held: "10.0.1.4: neighbour 10.0.1.4 lladdr 02:00:00:00:00:09 dev br0 nud permanent"},
		{name: "pods of ours", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.1"), Dev: devA, Table: PodsTable, Protocol: PodsProtocol},
				{Dst: ip("10.0.1.1"), Dev: devA, Table: MainTable, Protocol: Protocol}, // of a release before
				{Dst: ip("10.0.1.1"), Dev: devA, Table: MainTable, Protocol: 2}},       // a chained plugin's way to the same link
			Neighs: []Neigh{{Addr: ip("10.0.1.1"), Dev: devA}},
			Pods:   []PodEnd{{Dev: devA, Owner: a, Routed: []netip.Addr{ip("10.0.1.1")}}}}},
		{name: "a link of a pod of ours that does not tell yet whose it is", o: Occupancy{
			Pods: []PodEnd{{Dev: devA, Inner: []netip.Addr{ip("10.0.1.1")}}}}},
		{name: "a pod of ours that the node state does not know", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.3"), Dev: devLost, Table: PodsTable, Protocol: PodsProtocol}},
			Neighs: []Neigh{{Addr: ip("10.0.1.3"), Dev: devLost}},
			Pods:   []PodEnd{{Dev: devLost, Owner: lost, Routed: []netip.Addr{ip("10.0.1.3")}}}},
			held: "10.0.1.3: link " + devLost + " of default/lost (the address is at its other end)"},
		{name: "one that had its address when reading began", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.3"), Dev: devLost, Table: PodsTable, Protocol: PodsProtocol}},
			Pods:   []PodEnd{{Dev: devLost, Owner: lost, Routed: []netip.Addr{ip("10.0.1.3")}, Known: true}}}},
		{name: "one without a route, by what is at its other end", o: Occupancy{
			Neighs: []Neigh{{Addr: ip("10.0.1.3"), Dev: devLost}},
			Pods:   []PodEnd{{Dev: devLost, Owner: lost, Inner: []netip.Addr{ip("10.0.1.3"), ip("fe80::1")}}}},
			held: "10.0.1.3: link " + devLost + " of default/lost (the address is at its other end)"},
		{name: "a pod that puts others' addresses on its link", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.1"), Dev: devA, Table: PodsTable, Protocol: PodsProtocol}},
			Pods:   []PodEnd{{Dev: devA, Owner: a, Routed: []netip.Addr{ip("10.0.1.1")}, Inner: []netip.Addr{ip("10.0.1.1"), ip("10.0.1.3")}}}}},
		{name: "one whose address can't be read", o: Occupancy{
			Pods: []PodEnd{{Dev: devA, Owner: a, Unread: "no such number"}, {Dev: devLost, Owner: lost, Unread: "no such number"}}},
			held: "10.0.1.3: link " + devLost + " of default/lost, which may have any address: no such number\n" +
				"10.0.1.4: link " + devLost + " of default/lost, which may have any address: no such number"},
		{name: "another one's that can't be read, but is routed", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.4"), Dev: "eni5f", Table: MainTable}},
			Pods:   []PodEnd{{Dev: "eni5f", Routed: []netip.Addr{ip("10.0.1.4")}, Unread: "no such number"}}},
			held: "10.0.1.4: route 10.0.1.4 dev eni5f scope link (table main)"},
		{name: "what pods of ours have, as well", o: Occupancy{
			Routes: []HostRoute{{Dst: ip("10.0.1.1"), Dev: "lxc1", Table: MainTable, Protocol: 3}, {Dst: ip("10.0.1.2"), Dev: "veth1", Table: MainTable}},
			Rules:  []HostRule{{Priority: 1536, Addr: ip("10.0.1.1"), Table: 2}}},
			shared: "10.0.1.1 of default/a is claimed by others too: route 10.0.1.1 dev lxc1 scope link (table main)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.At = 20 * time.Second
			var lines []string
			held := tt.o.Held(heldPool())
			for _, a := range slices.SortedFunc(maps.Keys(held), netip.Addr.Compare) {
				lines = append(lines, a.String()+": "+held[a])
			}
			if diff := cmp.Diff(tt.held, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.shared, strings.Join(tt.o.Shared(heldPool()), "\n")); diff != "" {
				t.Errorf("shared (-want +got):\n%s", diff)
			}
		})
	}
}

// What was seen of an address before its last change may have been its last pod's.
func TestWhatWasReadBeforeAnAddressChangedHoldsNothing(t *testing.T) {
	s := heldPool()
	o := Occupancy{At: 20 * time.Second, Routes: []HostRoute{{Dst: s.Addresses[2].Addr, Dev: "eni5f", Table: MainTable}}}
	s.Addresses[2].State, s.Addresses[2].Since = eni.Cooling, 21*time.Second
	if held := o.Held(s); len(held) > 0 {
		t.Errorf("held: %v", held)
	}
	s.Addresses[2].Since = 19 * time.Second
	if held := o.Held(s); len(held) != 1 {
		t.Errorf("held: %v, want 10.0.1.3", held)
	}
}

func TestAnAddressIsNoLongerHeldWhenNothingHoldsIt(t *testing.T) {
	s := heldPool()
	third, fourth := s.Addresses[2].Addr, s.Addresses[3].Addr
	s.MarkHeld(map[netip.Addr]string{third: "a route", fourth: "a rule"}, 15*time.Second)
	o := Occupancy{At: 20 * time.Second, Rules: []HostRule{{Priority: 1536, Addr: fourth, Table: 2}}}
	if gone := o.NoLongerHeld(s); !slices.Equal(gone, []netip.Addr{third}) {
		t.Errorf("let go %v, want %v", gone, third)
	}
	o.At = 14 * time.Second // before an ADD found it held
	if gone := o.NoLongerHeld(s); len(gone) > 0 {
		t.Errorf("let go %v by what was read before", gone)
	}
}

func TestWhoHasWhatAccordingToTheKernel(t *testing.T) {
	ip := netip.MustParseAddr
	owner := func(name string) eni.Owner { return eni.Owner{Key: eni.Key{Network: "pods", Container: name}} }
	o := Occupancy{Pods: []PodEnd{
		{Dev: "a", Owner: owner("routed"), Routed: []netip.Addr{ip("10.0.1.1")}, Inner: []netip.Addr{ip("10.0.1.1"), ip("10.0.1.2")}},
		{Dev: "b", Owner: owner("route lost"), Inner: []netip.Addr{ip("10.0.1.1"), ip("10.0.1.2"), ip("192.0.2.1"), ip("fe80::1")}},
		{Dev: "c", Owner: owner("two of the pool"), Inner: []netip.Addr{ip("10.0.1.3"), ip("10.0.1.4")}},
		{Dev: "d", Owner: owner("not of the pool"), Routed: []netip.Addr{ip("192.0.2.2")}},
		{Dev: "eni5f", Routed: []netip.Addr{ip("10.0.1.3")}},
	}}
	var lines []string
	owners := o.Owners(heldPool())
	for _, a := range slices.SortedFunc(maps.Keys(owners), netip.Addr.Compare) {
		lines = append(lines, a.String()+" "+owners[a].Container)
	}
	want := "10.0.1.1 routed\n10.0.1.2 route lost\n192.0.2.2 not of the pool"
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}
