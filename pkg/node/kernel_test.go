package node

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// newNode makes links for n ENIs, and a node state that has them with an address each.
func newNode(t testing.TB, n int) (Node, *ipam.State) {
	nettest.Need(t)
	state := &ipam.State{Settings: ipam.Settings{SNAT: true, MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4},
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}}
	for i := range n {
		dev := fmt.Sprintf("eth%d", i)
		nettest.Run(t, "ip", "link", "add", dev, "address", fmt.Sprintf("02:00:00:00:00:0%d", i), "mtu", "9001", "type", "veth", "peer", "name", dev+"-far")
		t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", dev) })
		state.ENIs = append(state.ENIs, eni.Interface{ID: "eni-" + dev, Index: i, Device: dev, MTU: 9001,
			V4: eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d0/24", i+1)), Gateway: netip.MustParseAddr("10.0.0.1")}})
		state.Addresses = append(state.Addresses, eni.Address{Addr: netip.MustParseAddr(fmt.Sprintf("10.0.0.%d1", i+1)), ENI: i})
	}
	t.Cleanup(func() { nettest.Run(t, "nft", "flush", "ruleset") })
	return Node{Cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}, Now: func() time.Duration { return time.Hour }}, state
}

func (n Node) put(t testing.TB, s *ipam.State) {
	t.Helper()
	err := n.Cache.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return s, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// kernel is what of ours the kernel shows.
func kernel(t *testing.T) string {
	return nettest.Run(t, "ip", "rule") + nettest.Run(t, "ip", "route", "show", "table", "all", "proto", "69") +
		nettest.Run(t, "ip", "route", "show", "table", "all", "proto", "70") +
		nettest.Run(t, "ip", "addr") + nettest.Run(t, "nft", "list", "ruleset")
}

func TestGrowAddsBeforeTheCacheKnowsAndRepeatsNothing(t *testing.T) {
	n, state := newNode(t, 2)
	small := state.Clone()
	small.ENIs, small.Addresses = small.ENIs[:1], small.Addresses[:1]
	n.put(t, small)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	lines, err := n.Grow(t.Context(), state)
	if err != nil || len(lines) == 0 {
		t.Fatalf("grow: %q, %v", lines, err)
	}
	if have := kernel(t); !strings.Contains(have, "lookup 101") || !strings.Contains(have, "10.0.0.21") {
		t.Errorf("the kernel does not route the new ENI:\n%s", have)
	}
	if lines, err := n.Grow(t.Context(), state); err != nil || len(lines) > 0 {
		t.Errorf("a second time: %q, %v; want nothing", lines, err)
	}
}

func TestSyncForgetsWhatIsLeavingAndKeepsTheRest(t *testing.T) {
	n, state := newNode(t, 3)
	n.put(t, state)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	err := n.Cache.Update(t.Context(), func(s *ipam.State) error {
		s.StartRelease([]netip.Addr{netip.MustParseAddr("10.0.0.21"), netip.MustParseAddr("10.0.0.31")}, time.Hour)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Sync(t.Context(), []string{"eni-eth2"}, nil); err != nil {
		t.Fatal(err)
	}
	have := kernel(t)
	for text, want := range map[string]bool{
		"10.0.0.21":                     false, // releasing: no way out any more
		"from 10.0.0.20 lookup 101":     true,  // its ENI stays
		"lookup 102":                    false, // that one leaves
		"inet 10.0.0.30/24":             false,
		"default via 10.0.0.1 dev eth1": true,
	} {
		if strings.Contains(have, text) != want {
			t.Errorf("kernel has %q: %v, want %v\n%s", text, !want, want, have)
		}
	}
	if lines, err := n.Sync(t.Context(), []string{"eni-eth2"}, nil); err != nil || len(lines) > 0 {
		t.Errorf("a second time: %q, %v; want nothing", lines, err)
	}
	// Its link goes with the ENI, and nothing asks for it any more.
	nettest.Run(t, "ip", "link", "set", "eth2", "name", "gone")
	t.Cleanup(func() { nettest.Run(t, "ip", "link", "set", "gone", "name", "eth2") })
	if _, err := n.Sync(t.Context(), []string{"eni-eth2"}, nil); err != nil {
		t.Errorf("without the link: %v", err)
	}
}

// The address of a pod that was made anew elsewhere: what this node sends there must reach that pod, and not the one that still runs here.
func TestTheWayToAPodWhoseAddressHasMovedGoesAtOnceAndComesBack(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run(routing.String(), func(t *testing.T) {
			n, state := newNode(t, 2)
			state.Settings.Routing = routing
			owner := eni.Owner{Key: eni.Key{Network: "pods", Container: "a", IfName: "eth0"}, Kind: eni.Veth, Namespace: "db", Pod: "db-0"}
			addr := state.Addresses[1].Addr
			state.Addresses[1].State, state.Addresses[1].Owner = eni.Used, &owner
			state.Addresses[1].Reservation = &eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-0"}
			dev := netconf.HostDevice(owner.Key)
			nettest.Run(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", "peer")
			t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", dev) })
			lost := func(lost bool) {
				state.Addresses[1].Lost = lost
				n.put(t, state)
				if _, err := n.Sync(t.Context(), nil, nil); err != nil {
					t.Fatal(err)
				}
				have := nettest.Run(t, "ip", "rule") + nettest.Run(t, "ip", "route", "show", "table", "all", "proto", "69") + nettest.Run(t, "nft", "list", "ruleset")
				if strings.Contains(have, addr.String()) == lost {
					t.Errorf("lost %t:\n%s", lost, have)
				}
				if lines, err := n.Sync(t.Context(), nil, nil); err != nil || len(lines) > 0 {
					t.Errorf("a second time: %q, %v; want nothing", lines, err)
				}
			}
			lost(false)
			lost(true)
			lost(false)
			state.Addresses[1].Reservation, state.Addresses[1].Lost = nil, true // that of a pod without a topology stays
			n.put(t, state)
			if lines, err := n.Sync(t.Context(), nil, nil); err != nil || len(lines) > 0 {
				t.Errorf("%q, %v; want nothing", lines, err)
			}
		})
	}
}

func TestSyncRemovesWhatOnlyAnEarlierCacheAskedFor(t *testing.T) {
	n, state := newNode(t, 2)
	n.put(t, state)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	next := state.Clone()
	next.ENIs, next.Addresses = next.ENIs[:1], next.Addresses[:1]
	n.put(t, next)
	if _, err := n.Sync(t.Context(), nil, state); err != nil {
		t.Fatal(err)
	}
	if have := kernel(t); strings.Contains(have, "inet 10.0.0.20/24") || strings.Contains(have, "lookup 101") {
		t.Errorf("left over of an ENI that went:\n%s", have)
	}
}

func TestLinksAreNamedByTheirMAC(t *testing.T) {
	n, _ := newNode(t, 2)
	links, err := n.Links(t.Context())
	if got := links["02:00:00:00:00:01"]; err != nil || got.Device != "eth1" || got.MTU != 9001 {
		t.Errorf("links %v, %v; want eth1 of 9001 bytes", links, err)
	}
}

// A macvlan may have the MAC of the NIC below it, as an ipvlan or a vlan always has. Who takes one for the
// ENI moves the ENI's routes there, and cuts off its pods.
func TestALinkThatOthersPutOnAnENIIsNotTheENI(t *testing.T) {
	n, _ := newNode(t, 2)
	nettest.Run(t, "ip", "link", "add", "link", "eth1", "name", "theirs", "type", "macvlan", "mode", "passthru")
	links, err := n.Links(t.Context())
	if got := links["02:00:00:00:00:01"].Device; err != nil || got != "eth1" {
		t.Errorf("the ENI's link is taken to be %s, %v", got, err)
	}
}
