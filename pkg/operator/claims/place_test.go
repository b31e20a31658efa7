package claims

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// elasticOf knows of an Elastic topology in subnet s, of pods of it, and of a node n.
func elasticOf(t *testing.T, warm int32, n Node, families []eni.Family, pods ...string) *Known {
	t.Helper()
	k := New(families, 10*time.Second)
	of := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "s"}}, Strategy: crd.Strategy{Type: "Elastic"}, Warm: warm}}
	var list []Pod
	for i, name := range pods {
		list = append(list, Pod{Name: Name{"db", name}, UID: fmt.Sprint("u-", i), Node: "n", Topology: "t"})
	}
	for _, e := range []Event{{Topology: of}, {Pods: &list}, {Pods: &list}, {Complete: true}} {
		if err := k.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	k.SetSubnets([]topology.Subnet{{ID: "s", Zone: "z", V4: netip.MustParsePrefix("10.0.0.0/24"), V6: netip.MustParsePrefix("2001:db8::/64"), Ready: true, KeptFirst: 4, KeptLast: 1}})
	n.Name, n.Zone, n.Told, n.Serves = "n", "z", true, true
	k.SetNode(n)
	return k
}

var (
	v4   = []eni.Family{eni.IPv4}
	both = []eni.Family{eni.IPv4, eni.IPv6}
)

// fullENI is one of subnet s without room.
func fullENI(room4, room6 int) ENI {
	return ENI{ID: "eni-1", Subnet: "s", Room: map[eni.Family]int{eni.IPv4: room4, eni.IPv6: room6}}
}

func TestWhoGetsAPlaceOnAFullNode(t *testing.T) {
	for name, tt := range map[string]struct {
		node   Node
		pods   []string
		yields int
		causes []topology.Cause
		makes  bool
	}{
		"an ENI can be made":             {Node{ENIs: []ENI{fullENI(0, 0)}, MayMake: true}, []string{"a"}, 0, nil, true},
		"one can't be made for a while":  {Node{ENIs: []ENI{fullENI(0, 0)}}, []string{"a"}, 0, []topology.Cause{topology.NoSlot}, false},
		"nothing is idle":                {Node{ENIs: []ENI{fullENI(0, 0)}, Full: true}, []string{"a"}, 0, []topology.Cause{topology.NoPlace}, false},
		"one is idle":                    {Node{ENIs: []ENI{fullENI(0, 0)}, Full: true, Yields: map[string]int{"s": 1}}, []string{"a"}, 1, []topology.Cause{topology.Moving}, false},
		"one is idle, and two want it":   {Node{ENIs: []ENI{fullENI(0, 0)}, Full: true, Yields: map[string]int{"s": 1}}, []string{"a", "b"}, 1, []topology.Cause{topology.Moving, topology.NoPlace}, false},
		"one is idle in another subnet":  {Node{ENIs: []ENI{fullENI(0, 0)}, Full: true, Yields: map[string]int{"x": 1}}, []string{"a"}, 0, []topology.Cause{topology.NoPlace}, false},
		"there is room":                  {Node{ENIs: []ENI{fullENI(1, 0)}, Full: true, Yields: map[string]int{"s": 1}}, []string{"a"}, 0, nil, false},
		"there is room for one of three": {Node{ENIs: []ENI{fullENI(1, 0)}, Full: true, Yields: map[string]int{"s": 1}}, []string{"a", "b", "c"}, 1, []topology.Cause{topology.Moving, topology.NoPlace}, false},
	} {
		steps := elasticOf(t, 0, tt.node, v4, tt.pods...).Decide(noon, true)
		var causes []topology.Cause
		for _, w := range steps.Waits {
			causes = append(causes, w.Wait.Cause)
		}
		slices.Sort(causes)
		o := steps.Nodes["n"]
		if !slices.Equal(causes, tt.causes) || o.Yield["s"] != tt.yields || (o.Make.Subnet != "") != tt.makes || o.Promised["eni-1"] != min(len(o.Assign["eni-1"]), tt.node.ENIs[0].Room[eni.IPv4]) {
			t.Errorf("%s: pods wait for %v; %+v", name, causes, o)
		}
	}
}

// What is chosen and not ordered yet has its place: until its object is made, and until the call for it has ended.
func TestAPlaceIsPromisedBeforeTheCall(t *testing.T) {
	k := elasticOf(t, 0, Node{ENIs: []ENI{fullENI(1, 0)}}, v4, "db-0")
	claim, err := claimOf("a", "1", "").Read()
	if err != nil {
		t.Fatal(err)
	}
	claim.Subnet, claim.Topology = "s", "t"
	k.NoteCreating(claim, true)
	if o := k.Decide(noon, true).Nodes["n"]; o.Promised["eni-1"] != 1 || len(o.Assign) != 0 {
		t.Errorf("%+v", o)
	}
	k.SetOpen("n", map[netip.Addr]bool{claim.Addr: true}) // the call's own
	if o := k.Decide(noon, true).Nodes["n"]; o.Promised["eni-1"] != 0 {
		t.Errorf("while the call is under way %+v", o)
	}
}

// ready returns what orders keep for nobody yet, and what for a pod.
func ready(o Orders) (free, named []netip.Addr) {
	for _, r := range o.Reserved {
		if r.Pod == "" {
			free = append(free, r.Addr)
		} else {
			named = append(named, r.Addr)
		}
	}
	return free, named
}

func TestWhatIsReadyFollowsThePods(t *testing.T) {
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
	node := Node{ENIs: []ENI{fullENI(9, 0)}}
	k := elasticOf(t, 2, node, v4, "a")
	o := k.Decide(noon, true).Nodes["n"]
	free, named := ready(o)
	if !slices.Equal(free, []netip.Addr{at(5), at(6)}) || !slices.Equal(named, []netip.Addr{at(4)}) || len(o.Assign["eni-1"]) != 3 || o.Promised["eni-1"] != 3 {
		t.Fatalf("%+v", o)
	}
	node.ENIs[0].Addresses, node.Reserved = []netip.Addr{at(4), at(5), at(6)}, o.Reserved
	node.Name, node.Zone, node.Told, node.Serves = "n", "z", true, true
	k.SetNode(node)
	second := Pod{Name: Name{"db", "b"}, UID: "u-b", Node: "n", Topology: "t"}
	_ = k.Take(Event{Pod: &second})
	o = k.Decide(noon.Add(time.Second), true).Nodes["n"]
	if free, named = ready(o); !slices.Equal(free, []netip.Addr{at(6), at(7)}) || !slices.Equal(named, []netip.Addr{at(4), at(5)}) {
		t.Fatalf("%+v", o)
	}
	second.V4 = at(6) // that its node has given it
	_ = k.Take(Event{Pod: &second})
	o = k.Decide(noon.Add(2*time.Second), true).Nodes["n"]
	if at6 := slices.IndexFunc(o.Reserved, func(r order.Reserved) bool { return r.Addr == at(6) && r.UID == "u-b" }); at6 < 0 || len(o.Seize) > 0 {
		t.Fatalf("%+v", o)
	}
	if free, _ = ready(o); !slices.Contains(free, at(5)) {
		t.Errorf("%v are ready", free)
	}
	// Without pods they stay for an hour, and no longer.
	for _, name := range []string{"a", "b"} {
		p := k.pods[Name{"db", name}]
		_ = k.Take(Event{Pod: &p, Deleted: true})
	}
	node.Reserved = o.Reserved
	k.SetNode(node)
	o = k.Decide(noon.Add(time.Minute), true).Nodes["n"]
	if free, named = ready(o); len(free) < 2 || len(named) > 0 {
		t.Errorf("a minute after the last pod %+v", o)
	}
	node.Reserved = o.Reserved
	k.SetNode(node)
	o = k.Decide(noon.Add(2*time.Hour), true).Nodes["n"]
	if free, named = ready(o); len(free)+len(named) > 0 || len(o.Seize) == 0 {
		t.Errorf("two hours after the last pod %+v", o)
	}
}

func TestBothAddressesGoWhereBothHaveRoom(t *testing.T) {
	half := fullENI(3, 0)
	whole := ENI{ID: "eni-2", Subnet: "s", Room: map[eni.Family]int{eni.IPv4: 1, eni.IPv6: 1}}
	o := elasticOf(t, 0, Node{ENIs: []ENI{half, whole}}, both, "a").Decide(noon, true).Nodes["n"]
	if len(o.Assign["eni-2"]) != 2 || len(o.Assign) != 1 || o.Promised["eni-2"] != 1 {
		t.Errorf("%+v", o)
	}
	// Where the first one is there is no room for the second, and another ENI would not help.
	has := half
	has.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.4")}
	k := elasticOf(t, 0, Node{ENIs: []ENI{has, whole}, MayMake: true,
		Reserved: []order.Reserved{{Addr: has.Addresses[0], Topology: "t", Namespace: "db", Pod: "a", UID: "u-0"}}}, both, "a")
	steps := k.Decide(noon, true)
	if o := steps.Nodes["n"]; len(o.Assign) != 0 || o.Make.Subnet != "" || len(steps.Waits) != 1 || steps.Waits[0].Wait.Cause != topology.NoSlot {
		t.Errorf("%+v, %+v", o, steps.Waits)
	}
}

// other is an ENI of another subnet of the zone.
func other(room int) ENI {
	return ENI{ID: "eni-2", Subnet: "x", Room: map[eni.Family]int{eni.IPv4: room}}
}

func TestAnENIOfAnotherSubnetServesWhereTheCloudCrosses(t *testing.T) {
	for name, tt := range map[string]struct {
		node   Node
		on     string // the ENI that gets the address, "" for none
		makes  bool
		yields string // the subnet in which a place is left
		says   string // why it waits
	}{
		"its own subnet first":     {Node{ENIs: []ENI{other(1), fullENI(1, 0)}, Crosses: true}, "eni-1", false, "", ""},
		"there is no room":         {Node{ENIs: []ENI{other(1), fullENI(0, 0)}, Crosses: true, MayMake: true}, "eni-2", false, "", ""},
		"there is no ENI":          {Node{ENIs: []ENI{other(1)}, Crosses: true, MayMake: true}, "eni-2", false, "", ""},
		"no room on any":           {Node{ENIs: []ENI{other(0)}, Crosses: true, MayMake: true}, "", true, "", ""},
		"no room, and one is idle": {Node{ENIs: []ENI{other(0)}, Crosses: true, Full: true, Yields: map[string]int{"x": 1}}, "", false, "x", "makes room"},
		"the cloud does not":       {Node{ENIs: []ENI{other(1)}, MayMake: true}, "", true, "", ""},
		"it is refused for now":    {Node{ENIs: []ENI{other(1)}, Full: true, NoCross: "the list"}, "", false, "", "(the list)"},
		"it is in another zone":    {Node{ENIs: []ENI{other(1)}, Crosses: true, Zone: "y"}, "", false, "", "in zone y"},
	} {
		k := elasticOf(t, 0, tt.node, v4, "a")
		if tt.node.Zone != "" {
			n := k.nodes["n"]
			n.Zone = tt.node.Zone
			k.SetNode(n)
		}
		steps := k.Decide(noon, true)
		o, said := steps.Nodes["n"], ""
		for _, w := range steps.Waits {
			said += w.Wait.Message
		}
		on := ""
		for id := range o.Assign {
			on += id
		}
		if on != tt.on || (o.Make.Subnet != "") != tt.makes || tt.yields != "" && o.Yield[tt.yields] != 1 || tt.says == "" != (said == "") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %q; %+v", name, said, o)
		}
	}
}
