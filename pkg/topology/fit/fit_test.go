package fit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/topology"
)

// exclusive is a subnet of topologies alone, of which EC2 keeps five addresses.
func exclusive(id, cidr string) Subnet {
	return Subnet{Free: 1 << 20, Subnet: topology.Subnet{ID: id, Zone: "z", V4: netip.MustParsePrefix(cidr), Ready: true, Exclusive: true, KeptFirst: 4, KeptLast: 1}}
}

// asked is a topology with its subnets, each as ID or ID:FROM-TO, where FROM and TO are last bytes behind 10.0.0.
func asked(name string, strategy topology.Strategy, pods int, sources ...string) Asked {
	a := Asked{Topology: topology.Topology{Name: name, Strategy: strategy}, Pods: pods}
	for _, text := range sources {
		id, span, ranged := strings.Cut(text, ":")
		from := topology.Source{Subnet: id}
		if ranged {
			first, last, _ := strings.Cut(span, "-")
			from.Ranges = []topology.Range{{From: netip.MustParseAddr("10.0.0." + first), To: netip.MustParseAddr("10.0.0." + last)}}
		}
		a.Sources = append(a.Sources, from)
	}
	return a
}

// By hand: a /24 has 251 addresses for pods and the ENIs that carry them, of 9 pods each.
func TestAddressesAreThoseOfPodsAndOfTheirENIs(t *testing.T) {
	shared := exclusive("s", "10.0.0.0/24")
	shared.Exclusive = false
	used := exclusive("s", "10.0.0.0/24")
	used.Free = 100
	for _, tt := range []struct {
		name              string
		in                Input
		holds, enis, left int
	}{
		{"ENIs are full", Input{Topologies: []Asked{asked("a", topology.Elastic, 300, "s")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}}, 225, 25, 1},
		{"each pod has a node", Input{Topologies: []Asked{asked("a", topology.Elastic, 300, "s")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, Nodes: 1000}, 125, 125, 1},
		{"no more ENIs than nodes", Input{Topologies: []Asked{asked("a", topology.Elastic, 300, "s")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, Nodes: 50}, 201, 50, 0},
		{"a range", Input{Topologies: []Asked{asked("a", topology.Fixed, 40, "s:32-63")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}}, 32, 4, 215},
		{"a range leaves nothing for ENIs", Input{Topologies: []Asked{asked("a", topology.Fixed, 300, "s:0-251")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}}, 27, 3, 0},
		{"a range of a Shared subnet", Input{Topologies: []Asked{asked("a", topology.Sticky, 8, "s:32-63")}, Subnets: []Subnet{shared}}, 8, 1, 218},
		{"others have addresses", Input{Topologies: []Asked{asked("a", topology.Elastic, 300, "s")}, Subnets: []Subnet{used}}, 90, 10, 0},
		{"two of one subnet", Input{Topologies: []Asked{asked("a", topology.Sticky, 200, "s"), asked("b", topology.Elastic, 200, "s")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}}, 225, 25, 1},
		{"across subnets no ENI lies there", Input{Topologies: []Asked{asked("a", topology.Elastic, 300, "s")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, Nodes: 1000, Across: true}, 251, 0, 0},
		{"a range, across subnets", Input{Topologies: []Asked{asked("a", topology.Fixed, 300, "s:0-251")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, Across: true}, 248, 0, 3},
		{"the next subnet", Input{Topologies: []Asked{asked("a", topology.Elastic, 20, "r", "s")}, Subnets: []Subnet{exclusive("r", "10.0.1.0/28"), exclusive("s", "10.0.0.0/24")}}, 20, 2, 238},
	} {
		tt.in.PerENI, tt.in.Places = 9, 9
		p := Make(tt.in)
		holds := 0
		for _, h := range p.Topologies {
			holds += h.Holds
		}
		if s := p.Subnets[len(p.Subnets)-1]; holds != tt.holds || s.ENIs != tt.enis || s.Left != tt.left {
			t.Errorf("%s: holds %d with %+v; want %d, %d ENIs and %d left", tt.name, holds, s, tt.holds, tt.enis, tt.left)
		}
	}
}

// Topologies take addresses in the order in which they are tried for a pod, however they are listed.
func TestTheFirstTopologyHasItsAddressesFirst(t *testing.T) {
	first, second := asked("z", topology.Elastic, 200, "s"), asked("a", topology.Elastic, 100, "s")
	first.Priority = 7
	for _, list := range [][]Asked{{first, second}, {second, first}} {
		p := Make(Input{Topologies: list, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, PerENI: 9, Places: 9})
		var got []string
		for _, h := range p.Topologies {
			got = append(got, fmt.Sprint(h.Topology, " ", h.Holds, " of ", h.Pods))
		}
		if diff := cmp.Diff([]string{"z 200 of 200", "a 25 of 100"}, got); diff != "" || p.Met {
			t.Error(diff, p.Met)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	off := exclusive("off", "10.0.2.0/24")
	off.Ready = false
	shared := exclusive("shared", "10.0.0.0/24")
	shared.Exclusive = false
	older := asked("older", topology.Fixed, 1, "s:40-50")
	outside := asked("young", topology.Fixed, 5, "s:60-61")
	outside.Sources[0].Ranges[0].To = netip.MustParseAddr("10.0.9.9")
	all := []Subnet{exclusive("s", "10.0.0.0/24"), exclusive("t", "10.0.0.0/24"), off, shared}
	for _, tt := range []struct {
		of            Asked
		reason        string
		first, second string
	}{
		{asked("young", topology.Elastic, 5, "s"), "", "", ""},
		{asked("young", topology.Elastic, 300, "s"), "", "add an Exclusive subnet of /25 or larger to it, which has room for 85 pods and their ENIs", ""},
		{asked("young", topology.Fixed, 300, "s:64-95"), "", "name up to 204 addresses more in its ranges of subnet s", "add an Exclusive subnet of /23 or larger"},
		{asked("young", topology.Fixed, 250, "t:0-251"), "", "subnet t has 0 addresses left outside of ranges, and each ENI that carries these pods takes one", "add an Exclusive subnet"},
		{asked("young", topology.Elastic, 5, "nowhere"), "NoSubnet", "the network of subnet nowhere is not known", ""},
		{asked("young", topology.Elastic, 5, "off"), "NoSubnet", "subnet off is Disabled: set use: Exclusive", ""},
		{asked("young", topology.Fixed, 5, "s:45-60"), "RangeOverlap", "overlaps with a range of topology older", ""},
		{asked("young", topology.Fixed, 5, "shared"), "SubnetNotExclusive", "name some, or set use: Exclusive on the Subnet", ""},
		{outside, "RangeOutsideSubnet", "correct the range", ""},
	} {
		p := Make(Input{Topologies: []Asked{older, tt.of}, Subnets: all, PerENI: 9, Places: 9})
		var h Holding
		for _, one := range p.Topologies {
			if one.Topology == "young" {
				h = one
			}
		}
		changes := append(slices.Clone(h.Changes), "", "")
		if h.Reason != tt.reason || !strings.Contains(changes[0], tt.first) || !strings.Contains(changes[1], tt.second) || p.Met != (tt.first == "") {
			t.Errorf("%v: %+v, fits %t; want %s, %q and %q", tt.of.Sources, h, p.Met, tt.reason, tt.first, tt.second)
		}
	}
}

// More prefixes than the cloud takes are not reserved: a Shared subnet can't serve them, an Exclusive one can.
func TestRangesThatNeedTooManyReservations(t *testing.T) {
	many := asked("many", topology.Fixed, 5, "s")
	for i := range 17 {
		many.Sources[0].Ranges = append(many.Sources[0].Ranges, asked("", "", 0, fmt.Sprintf("s:%d-%d", 11+8*i, 14+8*i)).Sources[0].Ranges...)
	}
	one := exclusive("s", "10.0.0.0/24")
	if p := Make(Input{Topologies: []Asked{many}, Subnets: []Subnet{one}, PerENI: 9, Places: 9}); !p.Met || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "ranges are too many") {
		t.Errorf("%+v", p)
	}
	one.Exclusive = false
	p := Make(Input{Topologies: []Asked{many}, Subnets: []Subnet{one}, PerENI: 9, Places: 9})
	if h := p.Topologies[0]; p.Met || h.Reason != topology.UnreadyNotExclusive || !strings.Contains(h.Changes[0], "are too many, 32 can be reserved in a subnet") {
		t.Errorf("%+v", p)
	}
}

// A name may be misspelt: what it gives to nobody is said though the others have room for all.
func TestASubnetThatIsNotKnownIsNotedBesideOneThatServesAll(t *testing.T) {
	of := asked("a", topology.Elastic, 5, "s", "typo")
	p := Make(Input{Topologies: []Asked{of}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, PerENI: 9, Places: 9})
	if want := []string{"the network of subnet typo of topology a is not known: it is taken to have no address"}; !p.Met || !slices.Equal(p.Notes, want) {
		t.Errorf("fits %t, %q", p.Met, p.Notes)
	}
}

func TestNodesKeepPlacesForPodsOfTopologies(t *testing.T) {
	for _, tt := range []struct {
		nodes, places int
		want          string
	}{
		{0, 9, ""}, {4, 9, ""}, {0, 0, ""}, {9, 0, ""},
		{3, 9, "3 nodes keep 27 places, and topologies have 30 pods: keep 10 on each node, or have 4 nodes"},
	} {
		p := Make(Input{Topologies: []Asked{asked("a", topology.Elastic, 30, "s")}, Subnets: []Subnet{exclusive("s", "10.0.0.0/24")}, PerENI: 9, Nodes: tt.nodes, Places: tt.places})
		if got := strings.Join(p.Changes, ";"); !strings.Contains(got, tt.want) || p.Met != (tt.want == "") || (got == "") != (tt.want == "") {
			t.Errorf("%d nodes with %d places: %q, fits %t; want %q", tt.nodes, tt.places, got, p.Met, tt.want)
		}
		// Where other pods leave places free, theirs find some all the same.
		if told := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "no place of a node is kept for the 30 pods") }); told != (tt.places == 0) {
			t.Errorf("%d nodes with %d places: %q", tt.nodes, tt.places, p.Notes)
		}
	}
}

// An ENI carries pods of its own subnet alone, and stays when they have gone.
func TestWhatENIsOfTopologiesBringIsNoted(t *testing.T) {
	p := Make(Input{Topologies: []Asked{asked("a", topology.Elastic, 2, "r"), asked("b", topology.Elastic, 2, "s")}, PerENI: 9, Places: 9, ENIs: 1, Nodes: 20,
		Subnets: []Subnet{exclusive("r", "10.0.1.0/28"), exclusive("s", "10.0.0.0/24")}})
	want := []string{"subnet r has 7 addresses left, and each node that ever runs a pod of it keeps an ENI there: up to 18 more",
		"a node keeps 1 ENI, and topologies have 2 Exclusive subnets in zone z (r, s): it carries pods of 1 of them at once"}
	if diff := cmp.Diff(want, p.Notes); diff != "" || !p.Met {
		t.Error(diff, p.Met)
	}
}

// Across subnets the ENIs that nodes have carry pods of all subnets.
func TestAcrossSubnetsNoENIOfTopologiesIsReckonedWith(t *testing.T) {
	p := Make(Input{Topologies: []Asked{asked("a", topology.Elastic, 2, "r"), asked("b", topology.Elastic, 300, "s")}, PerENI: 9, Places: 20, Nodes: 20, Across: true,
		Subnets: []Subnet{exclusive("r", "10.0.1.0/28"), exclusive("s", "10.0.0.0/24")}})
	want := []string{"add an Exclusive subnet of /26 or larger to it, which has room for 49 pods"}
	if diff := cmp.Diff(want, p.Topologies[1].Changes); diff != "" || len(p.Notes) > 0 || p.Met {
		t.Error(diff, p.Notes, p.Met)
	}
}

// Whatever is asked: no subnet gives more than it has, and what is said to have room has it.
func TestNoSubnetGivesMoreThanItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{PerENI: rapid.IntRange(1, 20).Draw(t, "per ENI"), Across: rapid.Bool().Draw(t, "across"), Nodes: rapid.SampledFrom([]int{0, 1, 7, 400}).Draw(t, "nodes"), Places: 9}
		for i, cidr := range []string{"10.0.0.0/25", "10.0.0.128/26", "10.0.0.192/28"} {
			s := exclusive(fmt.Sprint("s", i), cidr)
			s.Free = rapid.SampledFrom([]int{0, 5, 30, 1000}).Draw(t, "free")
			in.Subnets = append(in.Subnets, s)
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "topologies") {
			a := asked(fmt.Sprint("t", i), rapid.SampledFrom([]topology.Strategy{topology.Elastic, topology.Fixed}).Draw(t, "strategy"), rapid.IntRange(0, 90).Draw(t, "pods"))
			for k := range 3 {
				if !rapid.Bool().Draw(t, "names it") {
					continue
				}
				from := fmt.Sprint("s", k)
				if first := rapid.IntRange(0, 90).Draw(t, "first"); k == 0 && a.Strategy == topology.Fixed {
					from = fmt.Sprintf("s0:%d-%d", first, first+rapid.IntRange(0, 30).Draw(t, "size"))
				}
				a.Sources = append(a.Sources, asked("", "", 0, from).Sources...)
			}
			if len(a.Sources) == 0 {
				a.Sources = asked("", "", 0, "s1").Sources
			}
			in.Topologies = append(in.Topologies, a)
		}
		p := Make(in)
		holds, pods := 0, 0
		for _, h := range p.Topologies {
			holds += h.Holds
			if h.Holds > h.Pods || h.Holds < h.Pods && len(h.Changes) == 0 || h.Reason != "" && h.Holds+h.Room > 0 || h.Holds < h.Pods && h.Room > 0 {
				t.Errorf("%+v", h)
			}
		}
		for _, s := range p.Subnets {
			pods += s.Pods
			all := topology.Cluster{Families: []eni.Family{eni.IPv4}, Subnets: []topology.Subnet{in.Subnets[s.Subnet[1]-'0'].Subnet}}
			usable := all.Room(topology.Topology{Strategy: topology.Elastic, Sources: []topology.Source{{Subnet: s.Subnet}}})
			if s.Left < 0 || s.Pods+s.ENIs+s.Left > usable || s.Taken+s.Left > usable || !in.Across && s.Pods > s.ENIs*in.PerENI || in.Across && s.ENIs > 0 {
				t.Errorf("of %d addresses: %+v", usable, s)
			}
		}
		if holds != pods {
			t.Errorf("topologies hold %d pods, and subnets have %d", holds, pods)
		}
	})
}
