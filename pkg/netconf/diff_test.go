package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// threeENIs is a node with a pod on each of them.
func threeENIs(change func(*ipam.State)) Node {
	s := &ipam.State{Settings: settings(func(s *ipam.Settings) { s.Routing = ipam.Rule }),
		ENIs:      []eni.Interface{nic(0, true, false), nic(1, true, false), nic(2, true, false)},
		Addresses: append(used(0, "10.0.0.11"), append(used(1, "10.0.1.21"), used(2, "10.0.2.21")...)...)}
	if change != nil {
		change(s)
	}
	return NewNode(s)
}

func difference(have, want, obsolete Node) string {
	add, remove := Diff(have, want, obsolete)
	lines := append(add.Lines("+ "), remove.Lines("- ")...)
	return strings.Join(append(lines, ""), "\n")
}

func TestDiffIsWhatMustBeDone(t *testing.T) {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	want := threeENIs(nil)
	drop := func(change func(*Node)) Node {
		n := threeENIs(nil)
		change(&n)
		return n
	}
	for _, tt := range []struct {
		name                 string
		have, want, obsolete Node
		diff                 string
	}{
		{"all is as it should be", want, want, want, ``},
		{"an empty kernel gets everything", Node{}, threeENIs(func(s *ipam.State) {
			s.Settings.Routing, s.ENIs, s.Addresses = ipam.Map, s.ENIs[:2], nil
		}), Node{}, `
			+ sysctl net/ipv4/ip_forward=1
			+ sysctl net/ipv4/conf/eth0/rp_filter=2
			+ sysctl net/ipv4/conf/eth0/forwarding=1
			+ sysctl net/ipv4/conf/eth1/rp_filter=2
			+ sysctl net/ipv4/conf/eth1/forwarding=1
			+ link eth0 up
			+ link eth1 up
			+ addr 10.0.0.10/24 dev eth0
			+ addr 10.0.1.10/24 dev eth1 noprefixroute
			+ route default via 10.0.0.1 dev eth0 proto 69
			+ route 10.0.1.1 dev eth1 table 101 proto 69 scope link
			+ route default via 10.0.1.1 dev eth1 table 101 proto 69
			+ rule 512: from all lookup 100 suppress_prefixlength 31 proto 70
			+ rule 1536: from all fwmark 0xff/0xff lookup main proto 70
			+ rule 1536: from all fwmark 0x1/0xff lookup 101 proto 70
			+ rule 1537: from 10.0.1.10 lookup 101 proto 69`},
		{"what others removed or changed is put back", drop(func(n *Node) {
			n.Sysctls[0].Value = "0"
			n.Links = n.Links[:2]
			n.Addrs = n.Addrs[1:]
			n.Routes[2].Gateway = a("10.0.1.99")
			n.Rules = n.Rules[1:]
		}), want, Node{}, `
			+ sysctl net/ipv4/ip_forward=1
			+ link eth2 up
			+ addr 10.0.0.10/24 dev eth0
			+ route default via 10.0.1.1 dev eth1 table 101 proto 69
			+ rule 512: from all lookup 100 suppress_prefixlength 31 proto 70
			- route default via 10.0.1.99 dev eth1 table 101 proto 69`},
		{"an ENI and its pods go", want, threeENIs(func(s *ipam.State) { s.ENIs, s.Addresses = s.ENIs[:2], s.Addresses[:2] }), want, `
			- addr 10.0.2.10/24 dev eth2 noprefixroute
			- route 10.0.2.1 dev eth2 table 102 proto 69 scope link
			- route default via 10.0.2.1 dev eth2 table 102 proto 69
			- rule 1536: from all fwmark 0x2/0xff lookup 102 proto 70
			- rule 1537: from 10.0.2.10 lookup 102 proto 69
			- rule 1538: from 10.0.2.21 to 10.0.0.0/16 lookup 102 proto 69
			- rule 1538: from 10.0.2.21 to 172.16.0.0/12 lookup 102 proto 69`},
		{"addresses that no earlier node state held stay", drop(func(n *Node) {
			n.Addrs = append(n.Addrs, Addr{Prefix: p("192.0.2.1/24"), Dev: "eth0"})
		}), want, Node{}, ``},
		{"an obsolete address that is gone need not be removed", want, want,
			Node{Addrs: []Addr{{Prefix: p("192.0.2.1/24"), Dev: "eth0"}}}, ``},
		{"the system's own default route will do", drop(func(n *Node) {
			n.Routes[0] = Route{Dst: p("0.0.0.0/0"), Gateway: a("10.0.0.254"), Dev: "eth0", Table: MainTable}
		}), want, Node{}, ``},
		{"the system has a default route again beside the one that we made meanwhile", drop(func(n *Node) {
			n.Routes = append(n.Routes, Route{Dst: p("0.0.0.0/0"), Gateway: a("172.31.0.1"), Dev: "mgmt0", Table: MainTable})
		}), want, Node{}, `
			- route default via 10.0.0.1 dev eth0 proto 69`},
		{"a link of a pod that the node state does not know keeps its routes", drop(func(n *Node) {
			n.Routes = append(n.Routes, Route{Dst: p("10.0.0.99/32"), Dev: "eni0", Table: PodsTable}, Route{Dst: p("10.0.0.98/32"), Dev: "eni1", Table: MainTable})
		}), want, Node{}, ``},
		{"a connected route beside the system's address will do", drop(func(n *Node) { n.Addrs[0].NoPrefixRoute = true }), want, Node{}, ``},
		{"one beside ours will not", drop(func(n *Node) { n.Addrs[1].NoPrefixRoute = false }), want, Node{}, `
			+ addr 10.0.1.10/24 dev eth1 noprefixroute`},
		{"a pod that came", threeENIs(func(s *ipam.State) { s.Addresses = s.Addresses[:2] }), want, Node{}, `
			+ rule 1538: from 10.0.2.21 to 10.0.0.0/16 lookup 102 proto 69
			+ rule 1538: from 10.0.2.21 to 172.16.0.0/12 lookup 102 proto 69`},
		{"a mode that changed", want, threeENIs(func(s *ipam.State) { s.Settings.Routing = ipam.Map }), want, `
			- rule 1538: from 10.0.1.21 to 10.0.0.0/16 lookup 101 proto 69
			- rule 1538: from 10.0.1.21 to 172.16.0.0/12 lookup 101 proto 69
			- rule 1538: from 10.0.2.21 to 10.0.0.0/16 lookup 102 proto 69
			- rule 1538: from 10.0.2.21 to 172.16.0.0/12 lookup 102 proto 69`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(text(tt.diff), strings.TrimPrefix(difference(tt.have, tt.want, tt.obsolete), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOnceDoneNothingIsLeftToDo: what the difference says, done to what is there,
// makes what is wanted, from any node to any other.
func TestOnceDoneNothingIsLeftToDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, want := anyNode(t, "old"), anyNode(t, "new")
		add, remove := Diff(old, want, old)
		have := Node{
			Sysctls: append(subtract(old.Sysctls, want.Sysctls), want.Sysctls...),
			Links:   append(subtract(old.Links, add.Links), add.Links...),
			Neighs:  append(subtract(old.Neighs, add.Neighs), add.Neighs...),
			Addrs:   append(subtract(old.Addrs, remove.Addrs), add.Addrs...),
			Routes:  append(subtract(old.Routes, remove.Routes), add.Routes...),
			Rules:   append(subtract(old.Rules, remove.Rules), add.Rules...),
		}
		if diff := strings.TrimSpace(difference(have, want, old)); diff != "" {
			t.Fatalf("still to do:\n%s", diff)
		}
	})
}

func anyNode(t *rapid.T, name string) Node {
	s := &ipam.State{Settings: settings(func(s *ipam.Settings) {
		s.Routing = rapid.SampledFrom([]ipam.Routing{ipam.Map, ipam.Rule}).Draw(t, name+" routing")
		s.SNAT = rapid.Bool().Draw(t, name+" snat")
	})}
	v6 := rapid.Bool().Draw(t, name+" v6")
	for i := range rapid.IntRange(1, 4).Draw(t, name+" ENIs") {
		s.ENIs = append(s.ENIs, nic(i, true, v6))
		for k := range rapid.IntRange(0, 3).Draw(t, name+" pods") {
			s.Addresses = append(s.Addresses, used(i, fmt.Sprintf("10.0.%d.%d", i, 20+k))...)
		}
	}
	return NewNode(s)
}

// onePod is a node with one pod whose link is there.
func onePod(change func(*Node)) Node {
	n := NewNode(&ipam.State{Settings: settings(nil), ENIs: []eni.Interface{nic(0, true, false)}, Addresses: used(0, "10.0.0.11")})
	n.PodLinks = []string{n.Pods[0].HostDev}
	n = n.withPods(n.PodLinks)
	if change != nil {
		change(&n)
	}
	return n
}

func TestAPodsRouteNeighbourAndLinkArePutBackWhereItsLinkExists(t *testing.T) {
	want := NewNode(&ipam.State{Settings: settings(nil), ENIs: []eni.Interface{nic(0, true, false)}, Addresses: used(0, "10.0.0.11")})
	for _, tt := range []struct {
		name string
		have Node
		diff string
	}{
		{"nothing is missing", onePod(nil), ``},
		{"all is gone but the link", onePod(func(n *Node) {
			n.Sysctls[3].Value, n.Sysctls[4].Value, n.Sysctls[5].Value, n.Links, n.Routes, n.Neighs = "0", "0", "0", n.Links[:1], n.Routes[:1], nil
		}), `
			+ sysctl net/ipv4/conf/eniba3b32d3853/rp_filter=1
			+ sysctl net/ipv4/conf/eniba3b32d3853/forwarding=1
			+ sysctl net/ipv6/conf/eniba3b32d3853/disable_ipv6=1
			+ link eniba3b32d3853 up
			+ route 10.0.0.11 dev eniba3b32d3853 table 100 proto 70 scope link
			+ neigh 10.0.0.11 lladdr 82:b0:56:b6:fa:72 dev eniba3b32d3853 nud permanent`},
		{"a pod without its link is being started or stopped", onePod(func(n *Node) {
			n.Sysctls, n.Links, n.Routes, n.Neighs, n.PodLinks = n.Sysctls[:3], n.Links[:1], n.Routes[:1], nil, nil
		}), ``},
		{"its neighbour has another address", onePod(func(n *Node) { n.Neighs[0].MAC = MAC{2} }), `
			+ neigh 10.0.0.11 lladdr 82:b0:56:b6:fa:72 dev eniba3b32d3853 nud permanent`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(text(tt.diff), strings.TrimPrefix(difference(tt.have, want, Node{}), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An upgrade never leaves a pod without a route that a rule finds: first the new
// routes and their rule, then the old routes go, then the old rule.
func TestPodsMoveFromTheMainTableToTheirOwnStepByStep(t *testing.T) {
	want := NewNode(&ipam.State{Settings: settings(nil), ENIs: []eni.Interface{nic(0, true, false)}, Addresses: used(0, "10.0.0.11")})
	have := onePod(func(n *Node) {
		n.Routes[1].Table = MainTable
		n.Rules[0] = Rule{Priority: PriorityPods, Table: MainTable, HostOnly: true}
	})
	for step, diff := range []string{`
			+ route 10.0.0.11 dev eniba3b32d3853 table 100 proto 70 scope link
			+ rule 512: from all lookup 100 suppress_prefixlength 31 proto 70`, `
			- route 10.0.0.11 dev eniba3b32d3853 proto 69 scope link`, `
			- rule 512: from all lookup main suppress_prefixlength 31 proto 69`, ``} {
		add, remove := Diff(have, want, Node{})
		if diff := cmp.Diff(text(diff), strings.TrimPrefix(difference(have, want, Node{}), "\n")); diff != "" {
			t.Errorf("step %d: %s", step+1, diff)
		}
		have.Routes = append(subtract(have.Routes, remove.Routes), add.Routes...)
		have.Rules = append(subtract(have.Rules, remove.Rules), add.Rules...)
	}
}

// After a downgrade the node state is of a release that knows nothing of the table; a tool
// of this release beside it must leave what serves the pods that are in there.
func TestAStateOfAnEarlierReleaseLeavesTheTableAlone(t *testing.T) {
	want := NewNode(&ipam.State{Settings: settings(func(s *ipam.Settings) { s.PodsInMain = true }),
		ENIs: []eni.Interface{nic(0, true, false)}, Addresses: used(0, "10.0.0.11")})
	diff := strings.TrimPrefix(difference(onePod(nil), want, Node{}), "\n")
	if diff := cmp.Diff(text(`
			+ rule 512: from all lookup main suppress_prefixlength 31 proto 69`), diff); diff != "" {
		t.Error(diff)
	}
}

func TestRulesForMarksOfAnEarlierReleaseAreKeptOrReplaced(t *testing.T) {
	mark := Rule{Priority: PriorityMark, Mark: 1, Mask: 0xff, Table: 101}
	earlier, old := mark, Rule{Priority: PriorityMark, Mark: 0x10000, Mask: 0xff0000, Table: 101, Earlier: true}
	earlier.Earlier = true
	for name, tt := range map[string]struct{ have, add, remove []Rule }{
		"the same rule is as good":     {have: []Rule{earlier}},
		"but not beside the own one":   {have: []Rule{earlier, mark}, remove: []Rule{earlier}},
		"that of another mask is none": {have: []Rule{old}, add: []Rule{mark}, remove: []Rule{old}},
	} {
		add, remove := Diff(Node{Rules: tt.have}, Node{Rules: []Rule{mark}}, Node{})
		if !slices.Equal(tt.add, add.Rules) || !slices.Equal(tt.remove, remove.Rules) {
			t.Errorf("%s: add %v, remove %v; want %v, %v", name, add.Rules, remove.Rules, tt.add, tt.remove)
		}
	}
	if got := OldMasks([]Rule{old, mark, {Priority: PriorityPrimary, Mask: 7}}, 0xff); len(got) != 1 || got[0] != 0xff0000 {
		t.Errorf("masks %#x, want that of the other rule for marks", got)
	}
}
