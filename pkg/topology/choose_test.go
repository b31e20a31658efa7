package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/eni"
)

// twoZones is a cluster with a subnet in each of the zones y and z, and a topology over both.
func twoZones(strategy Strategy, inY, inZ string) (*Cluster, Topology) {
	t := Topology{Name: "t", Strategy: strategy, Sources: []Source{{"s-z", ranges(inZ)}, {"s-y", ranges(inY)}}}
	if strategy == Sticky {
		t.TTL = time.Hour
	}
	y := inZone("s-y", "y")
	y.V4 = netip.MustParsePrefix("10.0.1.0/24")
	return &Cluster{Topologies: []Topology{t}, Subnets: []Subnet{y, inZone("s-z", "z")}, Families: []eni.Family{eni.IPv4}}, t
}

func member(name string) Pod {
	p := aPod("db", name, "x")
	p.StatefulSet = Workload{"db", "uid-db"}
	return p
}

var zNode = Node{Name: "n", Zone: "z", Anywhere: true}

func taken(text string) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, r := range ranges(text) {
		for at := r.From; at.Compare(r.To) <= 0; at = at.Next() {
			set[at] = true
		}
	}
	return set
}

func TestTheAddressOfAPodIsTheLowestThatNobodyHad(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inZ    string
		change func(*Cluster)
		want   string
	}{
		{"of all of the subnet, without what the cloud keeps", "", func(*Cluster) {}, "10.0.0.4"},
		{"of a range", "16-31", func(*Cluster) {}, "10.0.0.16"},
		{"the ranges are in order of addresses", "32-47 16-31", func(*Cluster) {}, "10.0.0.16"},
		{"not one on an ENI", "16-31", func(k *Cluster) { k.Taken = taken("16-17") }, "10.0.0.18"},
		{"not a claimed one", "16-31", func(k *Cluster) { k.Claims.Put(Claim{Addr: addr("16"), Namespace: "db", Pod: "other"}) }, "10.0.0.17"},
		{"not one of a delegated prefix", "", func(k *Cluster) { k.Blocks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")} }, "10.0.0.16"},
		{"not one that another topology names", "", func(k *Cluster) {
			k.Topologies = append(k.Topologies, Topology{Name: "u", Sources: []Source{{"s-z", ranges("2-9 20")}}})
		}, "10.0.0.10"},
		{"a range that is wrong keeps nothing from others", "", func(k *Cluster) {
			k.Topologies = append(k.Topologies, Topology{Name: "u", Sources: []Source{{"s-z", ranges("2-10.0.1.9")}}})
		}, "10.0.0.4"},
		{"rather one that no pod had", "16-19", func(k *Cluster) { k.Freed = map[netip.Addr]time.Time{addr("16"): noon, addr("17"): noon} }, "10.0.0.18"},
		{"else the one that has been free for the longest time", "16-18", func(k *Cluster) {
			k.Freed = map[netip.Addr]time.Time{addr("16"): noon, addr("17"): noon.Add(-time.Hour), addr("18"): noon.Add(-time.Minute)}
		}, "10.0.0.17"},
	} {
		k, of := twoZones(Sticky, "", tt.inZ)
		tt.change(k)
		c, why := Choose(of, member("db-0"), zNode, eni.IPv4, k)
		if c.Addr.String() != tt.want || why.Cause != None {
			t.Errorf("%s: %s, %+v; want %s", tt.name, c.Addr, why, tt.want)
		}
	}
}

// The subnet of the node's ENIs may be used up while another one of the topology has addresses: an ENI there is awaited, and no room.
func TestASubnetWithoutAnENIOnTheNodeCountsWhenTheOthersAreUsedUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		taken string
		want  Wait
	}{
		{"the other has one", "16-17", Wait{Cause: NoSlot, Message: "no ENI of n can carry one more address of s-y"}},
		{"none has one", "16-17 10.0.1.16-10.0.1.17", Wait{Cause: NoRoom, Message: "no address of topology t is left in zone z (s-z: none of 2 in its ranges, s-y: none of 2 in its ranges): add a subnet, or wait for other pods of it to end"}},
	} {
		k, of := twoZones(Elastic, "10.0.1.16-10.0.1.17", "16-17")
		k.Subnets[0].Zone = "z"
		k.Taken = taken(tt.taken)
		node := Node{Name: "n", Zone: "z", Subnets: []string{"s-z"}}
		if c, why := Choose(of, member("db-0"), node, eni.IPv4, k); why != tt.want {
			t.Errorf("%s: %+v, %+v; want %+v", tt.name, c, why, tt.want)
		}
	}
	k, of := twoZones(Elastic, "10.0.1.16-10.0.1.17", "16-17")
	k.Subnets[0].Zone, k.Taken = "z", taken("16-17")
	if c, why := Choose(of, member("db-0"), zNode, eni.IPv4, k); c.Addr != netip.MustParseAddr("10.0.1.16") {
		t.Errorf("of a node that may have any ENI: %+v, %+v", c, why)
	}
}

func TestAClaimSaysHowLongItsAddressStays(t *testing.T) {
	base := Claim{Addr: addr("4"), Topology: "t", Subnet: "s-z", Namespace: "db", Pod: "db-0"}
	for strategy, change := range map[Strategy]func(*Claim){
		Elastic: func(*Claim) {}, Sticky: func(c *Claim) { c.TTL = time.Hour }, Fixed: func(c *Claim) { c.StatefulSet = Workload{"db", "uid-db"} },
	} {
		k, of := twoZones(strategy, "", "")
		want := base
		want.Keep = strategy
		change(&want)
		if c, _ := Choose(of, member("db-0"), zNode, eni.IPv4, k); c != want {
			t.Errorf("%s: %+v, want %+v", strategy, c, want)
		}
	}
}

func TestAClaimThatExistsIsTakenUp(t *testing.T) {
	k, of := twoZones(Sticky, "", "16-31")
	k.Subnets[0].V6 = netip.MustParsePrefix("2001:db8::/64")
	put := func(c Claim) {
		c.Subnet, c.Namespace = "s-z", "db"
		if c.Topology == "" {
			c.Topology = "t"
		}
		if !k.Claims.Put(c) {
			t.Fatalf("%+v", c)
		}
	}
	put(Claim{Addr: addr("200"), Pod: "db-0"}) // not of the ranges as they are now
	put(Claim{Addr: addr("201"), Pod: "db-1", Topology: "u"})
	put(Claim{Addr: addr("202"), Pod: "db-2", Status: Status{Phase: Releasing}})
	put(Claim{Addr: addr("203"), Pod: "db-3", Status: Status{Phase: Releasing, PodUID: "uid-db-3"}})
	put(Claim{Addr: addr("204"), Pod: "db-4", Status: Status{Phase: Releasing, PodUID: "uid-of-before"}})
	put(Claim{Addr: addr("206"), Pod: "db-5", Status: Status{PodUID: "uid-db-5"}})
	put(Claim{Addr: addr("205"), Pod: "db-5"})
	for name, want := range map[string]string{
		"db-0": "10.0.0.200",
		"db-1": "10.0.0.16",  // the one that it has is of another topology
		"db-2": "10.0.0.16",  // it ends
		"db-3": "10.0.0.203", // it ends after this pod
		"db-4": "10.0.0.16",
		"db-5": "10.0.0.206", // of two the one that has the pod
	} {
		if c, why := Choose(of, member(name), zNode, eni.IPv4, k); c.Addr.String() != want || why.Cause != None {
			t.Errorf("%s: %s, %+v; want %s", name, c.Addr, why, want)
		}
	}
	if c, why := Choose(of, member("db-0"), zNode, eni.IPv6, k); why.Cause != NoSubnet {
		t.Errorf("of the other family in a zone without: %+v, %+v", c, why)
	}
	if k.Claims.Put(Claim{Addr: addr("200"), Namespace: "db", Pod: "db-1", Topology: "t"}) || k.Claims.Put(Claim{Addr: addr("200"), Namespace: "db", Pod: "db-0", Topology: "u"}) {
		t.Error("an address is claimed twice")
	}
	k.Claims.Remove(addr("200"))
	k.Claims.Remove(addr("200"))
	if c, _ := Choose(of, member("db-0"), zNode, eni.IPv4, k); c.Addr != addr("16") {
		t.Errorf("after the claim has gone: %s", c.Addr)
	}
}

func TestAPodWithoutAnAddressIsToldWhatIsAwaited(t *testing.T) {
	yNode := Node{Name: "m", Zone: "y", Anywhere: true}
	for _, tt := range []struct {
		name    string
		of      Strategy
		node    Node
		change  func(*Cluster, *Topology, *Pod)
		cause   Cause
		message string
	}{
		{"it is of no StatefulSet", Fixed, zNode, func(_ *Cluster, _ *Topology, p *Pod) { p.StatefulSet = Workload{} }, NoStatefulSet,
			"topology t gives Fixed addresses, and no StatefulSet of apps/v1 controls the pod: make it by one, or have it selected by a Sticky topology"},
		{"a subnet is not the topologies' own", Sticky, zNode, func(k *Cluster, _ *Topology, _ *Pod) { k.Subnets[1].Exclusive = false }, TopologyNotReady,
			"topology t: subnet s-z is not Exclusive, and 10.0.0.16/30 is not reserved in the cloud yet; if that lasts, the condition Reserved of the Subnet says why"},
		{"another zone", Sticky, Node{Name: "n", Zone: "x", Anywhere: true}, func(*Cluster, *Topology, *Pod) {}, NoSubnet, "no subnet of topology t with ipv4 is ready in zone x"},
		{"the subnet of the zone is not ready", Sticky, yNode, func(k *Cluster, _ *Topology, _ *Pod) { k.Subnets[0].Ready = false }, NoSubnet, "no subnet of topology t with ipv4 is ready in zone y"},
		{"the node can't have more", Sticky, Node{Name: "n", Zone: "z", Subnets: []string{"s"}}, func(*Cluster, *Topology, *Pod) {}, NoSlot, "no ENI of n can carry one more address of s-z"},
		{"all is taken", Sticky, zNode, func(k *Cluster, _ *Topology, _ *Pod) { k.Taken = taken("16-19") }, NoRoom,
			"no address of topology t is left in zone z (s-z: none of 4 in its ranges): add a subnet or a range, or delete claims that nobody needs (`enipoolctl cluster claims --topology t`)"},
		{"all is claimed", Sticky, zNode, func(k *Cluster, _ *Topology, _ *Pod) {
			k.Taken = taken("16")
			for i, since := range []time.Time{noon.Add(time.Minute), noon, {}} {
				k.Claims.Put(Claim{Addr: addr(fmt.Sprint(17 + i)), Namespace: "db", Pod: fmt.Sprint("old-", i), Keep: Sticky, TTL: time.Hour, Status: Status{FreeSince: since}})
			}
			k.Claims.Put(Claim{Addr: addr("200"), Namespace: "web", Pod: "other", Keep: Sticky, Status: Status{FreeSince: dayOne}})
		}, NoRoom, "no address of topology t is left in zone z (s-z: none of 4 in its ranges): the next is 10.0.0.18, when the claim of db/old-1 ends at 2026-01-01T13:00:00Z"},
		{"its address lies in another zone", Fixed, yNode, func(k *Cluster, _ *Topology, _ *Pod) {
			k.Claims.Put(Claim{Addr: addr("16"), Topology: "t", Subnet: "s-z", Namespace: "db", Pod: "db-0"})
		}, OtherZone, "the pod's address 10.0.0.16 lies in zone z, and m in zone y: delete the pod, or the claim"},
		{"its address can't move to the node", Fixed, Node{Name: "n", Zone: "z"}, func(k *Cluster, _ *Topology, _ *Pod) {
			k.Claims.Put(Claim{Addr: addr("16"), Topology: "t", Subnet: "s-z", Namespace: "db", Pod: "db-0", Status: Status{Node: "o"}})
		}, NoSlot, "no ENI of n can carry one more address of s-z"},
		{"it is there already, and needs no more", Fixed, Node{Name: "n", Zone: "z"}, func(k *Cluster, _ *Topology, _ *Pod) {
			k.Claims.Put(Claim{Addr: addr("16"), Topology: "t", Subnet: "s-z", Namespace: "db", Pod: "db-0", Status: Status{Node: "n"}})
		}, None, ""},
		{"its subnet is gone", Fixed, zNode, func(k *Cluster, _ *Topology, _ *Pod) {
			k.Claims.Put(Claim{Addr: addr("16"), Topology: "t", Subnet: "s-x", Namespace: "db", Pod: "db-0"})
		}, NoSubnet, "the pod's address 10.0.0.16 is of subnet s-x, which the cloud does not show"},
	} {
		k, of := twoZones(tt.of, "", "16-19")
		p := member("db-0")
		tt.change(k, &of, &p)
		if _, why := Choose(of, p, tt.node, eni.IPv4, k); why.Cause != tt.cause || why.Message != tt.message {
			t.Errorf("%s: %+v", tt.name, why)
		}
	}
}

// The list of subnets is an order of preference, but a pod does not wait for a subnet that its node can't have now.
func TestSubnetsAreTakenInTheOrderOfPeople(t *testing.T) {
	k, of := twoZones(Elastic, "", "")
	k.Subnets[0].Zone = "z"
	for _, tt := range []struct {
		node  Node
		taken string
		want  string
	}{
		{zNode, "", "10.0.0.4"},
		{Node{Name: "n", Zone: "z", Subnets: []string{"s-y"}}, "", "10.0.1.4"},
		{zNode, "4-254", "10.0.1.4"},
	} {
		k.Taken = taken(tt.taken)
		if c, why := Choose(of, member("db-0"), tt.node, eni.IPv4, k); c.Addr.String() != tt.want {
			t.Errorf("%+v with %s taken: %s, %+v", tt.node, tt.taken, c.Addr, why)
		}
	}
}

func TestOfALargeRangeNoMoreIsWalkedThanIsInTheWay(t *testing.T) {
	k, of := twoZones(Sticky, "", "")
	k.Subnets[1].V6 = netip.MustParsePrefix("2001:db8::/64")
	k.Blocks = []netip.Prefix{netip.MustParsePrefix("2001:db8::/66"), netip.MustParsePrefix("2001:db8:0:0:4000::/66")}
	if c, why := Choose(of, member("db-0"), zNode, eni.IPv6, k); c.Addr.String() != "2001:db8:0:0:8000::" {
		t.Errorf("%s, %+v", c.Addr, why)
	}
}

// Pods of any order get addresses of the topology's ranges, no two the same one, each again the one that it had, and none is told
// that there is no room while there is.
func TestNoTwoPodsGetOneAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, of := twoZones(rapid.SampledFrom([]Strategy{Sticky, Fixed}).Draw(t, "strategy"), "", "16-23 30-31")
		k.Taken, k.Freed = map[netip.Addr]bool{}, map[netip.Addr]time.Time{}
		for _, last := range rapid.SliceOfN(rapid.IntRange(14, 32), 0, 6).Draw(t, "taken") {
			k.Taken[addr(fmt.Sprint(last))] = true
		}
		for _, last := range rapid.SliceOfN(rapid.IntRange(14, 32), 0, 6).Draw(t, "freed") {
			k.Freed[addr(fmt.Sprint(last))] = noon.Add(time.Duration(last%3) * time.Minute)
		}
		had := map[string]netip.Addr{}
		for range 25 {
			name := fmt.Sprint("db-", rapid.IntRange(0, 12).Draw(t, "pod"))
			c, why := Choose(of, member(name), zNode, eni.IPv4, k)
			before, again := had[name]
			switch {
			case why.Cause == NoRoom:
				left := slices.DeleteFunc(strings.Fields("16 17 18 19 20 21 22 23 30 31"), func(last string) bool {
					_, claimed := k.Claims.byAddr[addr(last)]
					return claimed || k.Taken[addr(last)]
				})
				if again || len(left) > 0 {
					t.Fatalf("%s: %+v, and %v are left", name, why, left)
				}
				continue
			case why.Cause != None:
				t.Fatalf("%+v", why)
			case again && c.Addr != before:
				t.Fatalf("%s had %s, and gets %s", name, before, c.Addr)
			case !again && (k.Taken[c.Addr] || !k.isOf(of.Sources[0], c.Addr)):
				t.Fatalf("%s gets %s", name, c.Addr)
			case !k.Claims.Put(c):
				t.Fatalf("%s gets %s, which another one has", name, c.Addr)
			}
			had[name] = c.Addr
		}
	})
}

// What is reserved for a pod by its uid is what it has, or gets, even if that ends after it.
func TestWhichClaimsServeTheirPod(t *testing.T) {
	for _, tt := range []struct {
		s    Status
		want bool
	}{
		{Status{}, false}, {Status{Phase: Free, PodUID: "1"}, false}, {Status{Phase: OnItsWay, PodUID: "1"}, false}, {Status{Phase: Contested, PodUID: "1"}, false},
		{Status{Phase: Bound, PodUID: "1"}, true}, {Status{Phase: Releasing, PodUID: "1"}, true}, {Status{Phase: Releasing}, false},
	} {
		if got := (Claim{Status: tt.s}).Serves(); got != tt.want {
			t.Errorf("%+v: %t", tt.s, got)
		}
	}
}
