package crd

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func anyCount(t *rapid.T, what string) int { return rapid.IntRange(0, 300).Draw(t, what) }

func anyIDs(t *rapid.T, what string) []string {
	return rapid.SampledFrom([][]string{nil, {"eni-1"}, {"eni-1", "eni-2"}}).Draw(t, what)
}

func anyPrefixes(t *rapid.T, what string) (list []netip.Prefix) {
	for range rapid.IntRange(0, 3).Draw(t, what) {
		text := rapid.SampledFrom([]string{"10.0.0.%d/32", "10.0.%d.16/28", "2001:db8::%x/128", "2001:db8:0:0:%x::/80"}).Draw(t, "as")
		list = append(list, netip.MustParsePrefix(fmt.Sprintf(text, anyByte(t))))
	}
	return list
}

func anyByte(t *rapid.T) int { return rapid.IntRange(0, 255).Draw(t, "number") }

func anySpec(t *rapid.T) order.Spec {
	c := pool.Config{Mode: pool.Mode(rapid.IntRange(0, 2).Draw(t, "pool mode")), FirstENI: rapid.IntRange(0, 1).Draw(t, "first"),
		MaxAllocate: anyCount(t, "most"), MaxAllocateENI: anyCount(t, "most ENIs"), MaxIPsPerENI: anyCount(t, "per ENI"), PreAllocateENI: anyCount(t, "ENIs ahead"), TopologyPlaces: anyCount(t, "places"),
		Multiple: anyCount(t, "multiple"), Partial: rapid.Bool().Draw(t, "partial"), ReturnENIs: rapid.Bool().Draw(t, "return"),
		MinAllocate: anyCount(t, "min"), PreAllocate: anyCount(t, "ahead"), MaxAboveWatermark: anyCount(t, "above")}
	c.Scale.Batch = anyCount(t, "batch")
	return order.Spec{Mode: rapid.SampledFrom([]order.Mode{order.Self, order.Operator}).Draw(t, "mode"),
		Families: rapid.SampledFrom([][]eni.Family{nil, {eni.IPv4}, {eni.IPv6, eni.IPv4}}).Draw(t, "families"),
		Slots:    anyCount(t, "slots"), Waiting: anyCount(t, "waiting"), Pool: c,
		Release: anyPrefixes(t, "release"), ReleaseInterfaces: anyIDs(t, "release ENIs"), Held: anyPrefixes(t, "held"),
		NoLink: anyIDs(t, "no link"), Idle: anyIDs(t, "idle"), Boot: rapid.SampledFrom([]string{"", "boot"}).Draw(t, "boot"), SeenRevision: int64(anyCount(t, "seen")), SeenEpoch: int64(anyCount(t, "epoch"))}
}

func anyNet(t *rapid.T, what, primary, gateway string) (in eni.Net) {
	if rapid.Bool().Draw(t, what) {
		in.Primary = netip.MustParsePrefix(primary)
		if rapid.Bool().Draw(t, "gateway") {
			in.Gateway = netip.MustParseAddr(gateway)
		}
	}
	return in
}

func anyLimits(t *rapid.T) eni.Limits {
	l := eni.Limits{ENIs: anyCount(t, "ENIs"), V4: anyCount(t, "v4"), V6: anyCount(t, "v6"), NoPrimary: rapid.Bool().Draw(t, "no primary")}
	if rapid.Bool().Draw(t, "blocks") {
		l.V4Block, l.V6Block = eni.Block{Bits: 28, Size: 16}, eni.Block{Bits: 80, Size: 16}
	}
	return l
}

func anyStatus(t *rapid.T) order.Status {
	s := order.Status{Mode: rapid.SampledFrom([]order.Mode{order.Self, order.Joining, order.Leaving, order.Operator}).Draw(t, "mode"),
		Revision: int64(anyCount(t, "revision")), Epoch: int64(anyCount(t, "epoch")), Created: int64(anyCount(t, "created")), Limits: anyLimits(t),
		Releasing: anyPrefixes(t, "releasing"), LeavingInterfaces: anyIDs(t, "leaving")}
	for i := range rapid.IntRange(0, 3).Draw(t, "cards") {
		s.ENIs = append(s.ENIs, order.ENI{ID: fmt.Sprint("eni-", i), Index: i, MAC: "02:00:00:00:00:01", Subnet: "subnet-a",
			State: order.ENIState(rapid.IntRange(0, 3).Draw(t, "state")), Token: rapid.SampledFrom([]string{"", "T"}).Draw(t, "token"),
			Topology: rapid.SampledFrom([]string{"", "db"}).Draw(t, "topology"), V4: anyNet(t, "v4 net", "10.0.3.4/20", "10.0.0.1"),
			V6: anyNet(t, "v6 net", "2001:db8::4/64", "fe80::1"), Addresses: anyPrefixes(t, "addresses")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "leaders") {
		s.Leaders = append(s.Leaders, order.Leader{Epoch: int64(anyCount(t, "its epoch")), First: int64(anyCount(t, "first"))})
	}
	for _, p := range anyPrefixes(t, "quarantined") {
		s.Quarantined = append(s.Quarantined, order.Quarantined{Prefix: p, Until: time.Unix(int64(anyCount(t, "until")), 0).UTC()})
	}
	for range rapid.IntRange(0, 2).Draw(t, "reserved") {
		s.Reserved = append(s.Reserved, order.Reserved{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(anyByte(t))}), Topology: "db",
			Namespace: "ns", Pod: rapid.SampledFrom([]string{"", "db-0"}).Draw(t, "pod"), UID: rapid.SampledFrom([]string{"", "u"}).Draw(t, "uid")})
	}
	return s
}

// sameValues compares values of the protocol.
var sameValues = cmp.Options{cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }), cmpopts.EquateEmpty()}

// What one side writes the other reads, by way of the API server: nothing gets lost or becomes something else on the way.
func TestWhatOneSideWritesTheOtherReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := order.View{Spec: anySpec(t), Status: anyStatus(t)}
		var n, read NodeNetwork
		n.Spec.Write(v.Spec)
		n.Status.Write(v.Status)
		wire, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(wire, &read); err != nil {
			t.Fatal(err)
		}
		got, err := View(&read)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, got, sameValues); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
		spec, status := read.Spec, read.Status
		spec.Write(got.Spec)
		status.Write(got.Status)
		if diff := cmp.Diff(read, NodeNetwork{Spec: spec, Status: status}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("an object that is read and written again is another one (-before +after):\n%s", diff)
		}
	})
}

// The protocol does not know of all that stands in an object: writing its part leaves the rest alone.
func TestWritingLeavesTheRestAlone(t *testing.T) {
	n := 0
	var object NodeNetwork
	fill(reflect.ValueOf(&object.Spec).Elem(), &n)
	fill(reflect.ValueOf(&object.Status).Elem(), &n)
	before := object.DeepCopy()
	object.Spec.Write(order.Spec{})
	object.Status.Write(order.Status{ENIs: []order.ENI{{ID: before.Status.ENIs[1].ID}}})
	if got, want := object.Status.ENIs[0].Created, before.Status.ENIs[1].Created; !got.Equal(want) {
		t.Errorf("an ENI that was there was made at %v, want %v", got, want)
	}
	rest := cmpopts.IgnoreFields(NodeNetworkSpec{}, "Mode", "Families", "Slots", "Waiting", "Pool", "Release", "ReleaseInterfaces", "Held", "NoLink", "Idle", "Boot", "SeenRevision", "SeenEpoch")
	if diff := cmp.Diff(before.Spec, object.Spec, rest); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
	rest = cmp.Options{cmpopts.IgnoreFields(NodeNetworkStatus{}, "Mode", "Revision", "Epoch", "Leaders", "Created", "ENIs", "Releasing", "LeavingInterfaces", "Quarantined", "Reserved"),
		cmpopts.IgnoreFields(InstanceFacts{}, "Limits")}[0]
	if diff := cmp.Diff(before.Status, object.Status, rest, cmpopts.IgnoreFields(InstanceFacts{}, "Limits")); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
}

// The end of a quarantine has whole seconds in an object, and is never before its time.
func TestAQuarantineIsNeverRoundedDown(t *testing.T) {
	until := time.Unix(100, 1).UTC()
	var s NodeNetworkStatus
	s.Write(order.Status{Quarantined: []order.Quarantined{{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Until: until}}})
	if got := s.Quarantined[0].Until; got.Time.Before(until) || !got.Equal(&metav1.Time{Time: time.Unix(101, 0)}) {
		t.Errorf("until %s, want 1 s more than %s", got, until)
	}
}

// What can't be read is an error that names the field, and never a list without an entry.
func TestWhatCantBeReadIsAnError(t *testing.T) {
	for want, change := range map[string]func(*NodeNetwork){
		"mode":        func(n *NodeNetwork) { n.Spec.Mode = "Both" },
		"pool":        func(n *NodeNetwork) { n.Spec.Pool.Mode = "bach" },
		"families":    func(n *NodeNetwork) { n.Spec.Families = []string{"IPv5"} },
		"release":     func(n *NodeNetwork) { n.Spec.Release = []string{"10.0.0.1", "10.0.0.300"} },
		"held":        func(n *NodeNetwork) { n.Spec.Held = []string{"10.0.0.1/28"} },
		"releasing":   func(n *NodeNetwork) { n.Status.Releasing = []string{"x"} },
		"quarantined": func(n *NodeNetwork) { n.Status.Quarantined = []Quarantined{{Address: "x"}} },
		"reserved":    func(n *NodeNetwork) { n.Status.Reserved = []Reserved{{Address: "x"}} },
		"enis":        func(n *NodeNetwork) { n.Status.ENIs = []ENI{{ID: "eni-1", Addresses: []string{"x"}}} },
	} {
		n := NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: NodeNetworkSpec{Mode: Self}}
		change(&n)
		if _, err := View(&n); err == nil || !strings.Contains(err.Error(), "node-1: "+want+": ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A later release may have states of ENIs that this one does not know: the ENI stays in the object as it is, and the rest is read.
func TestAnENIOfAnUnknownStateStaysAsItIs(t *testing.T) {
	n := NodeNetwork{Status: NodeNetworkStatus{ENIs: []ENI{{ID: "eni-0", State: "Attached", Addresses: []string{"10.0.0.7"}}, {ID: "eni-1", State: "Parked", Addresses: []string{"10.0.0.9"}}}}}
	v, err := View(&n)
	if err != nil || v.Status.ENIs[0].State != order.Attached || v.Status.ENIs[1].State != order.Unknown || v.Status.ENIs[1].Said != "Parked" {
		t.Fatalf("%+v, %v", v.Status.ENIs, err)
	}
	before := n.DeepCopy()
	n.Status.Write(v.Status)
	if diff := cmp.Diff(before.Status.ENIs, n.Status.ENIs); diff != "" {
		t.Errorf("written again (-before +after):\n%s", diff)
	}
}
