package convert

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

var same = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

func anyPrefix(t *rapid.T) netip.Prefix {
	n := byte(rapid.IntRange(0, 15).Draw(t, "number"))
	return rapid.SampledFrom([]netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 32), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, n, 16}), 28),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: n}), 128), netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 8: n}), 80)}).Draw(t, "prefix")
}

func anyPrefixes(t *rapid.T) []netip.Prefix {
	return rapid.SliceOfN(rapid.Custom(anyPrefix), 0, 3).Draw(t, "prefixes")
}

func anyWords(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"eni-a", "eni-b"}), 0, 2).Draw(t, "words")
}

func anyTime(t *rapid.T) time.Time {
	return rapid.SampledFrom([]time.Time{{}, time.Unix(1_800_000_000, 0)}).Draw(t, "time")
}

func anyNumber(t *rapid.T) int { return rapid.IntRange(0, 40).Draw(t, "number") }

func anySpec(t *rapid.T) (order.Spec, order.Asks) {
	c := pool.Config{Mode: pool.Mode(rapid.IntRange(0, 2).Draw(t, "mode")), FirstENI: anyNumber(t), MaxAllocate: anyNumber(t), MaxAllocateENI: anyNumber(t),
		MaxIPsPerENI: anyNumber(t), PreAllocateENI: anyNumber(t), Multiple: anyNumber(t),
		Partial: rapid.Bool().Draw(t, "partial"), ReturnENIs: rapid.Bool().Draw(t, "return"), MinAllocate: anyNumber(t), PreAllocate: anyNumber(t),
		MaxAboveWatermark: anyNumber(t)}
	c.Scale.Batch = anyNumber(t)
	s := order.Spec{Mode: rapid.SampledFrom([]order.Mode{order.Self, order.Operator}).Draw(t, "calls"), Families: []eni.Family{eni.IPv6, eni.IPv4},
		Slots: anyNumber(t), Waiting: anyNumber(t), Pool: c, TopologyPlaces: anyNumber(t), Release: anyPrefixes(t), ReleaseInterfaces: anyWords(t),
		Held: anyPrefixes(t), NoLink: anyWords(t), Idle: anyWords(t), Boot: "boot", SeenRevision: int64(anyNumber(t))}
	return s, order.Asks{WaitingSince: anyTime(t), Handover: order.Handover{Tokens: anyWords(t), Release: anyPrefixes(t), ReleaseInterfaces: anyWords(t)}}
}

func anyStatus(t *rapid.T) (order.Status, order.Tells) {
	s := order.Status{Mode: rapid.SampledFrom([]order.Mode{order.Self, order.Joining, order.Leaving, order.Operator}).Draw(t, "mode"),
		Revision: int64(anyNumber(t)), Epoch: int64(anyNumber(t)), Created: int64(anyNumber(t)), Releasing: anyPrefixes(t), LeavingInterfaces: anyWords(t)}
	if rapid.Bool().Draw(t, "limits") {
		s.Limits = eni.Limits{ENIs: 3, V4: anyNumber(t), V6: anyNumber(t), V4Block: eni.Block{Bits: 28, Size: 16}, NoPrimary: rapid.Bool().Draw(t, "no primary")}
	}
	for _, state := range rapid.SliceOfN(rapid.SampledFrom(eniStates), 0, 3).Draw(t, "states") {
		e := order.ENI{ID: "eni-a", Index: anyNumber(t), MAC: "02:00:00:00:00:01", Subnet: "subnet-a", State: state, Token: "token", Topology: "db", Addresses: anyPrefixes(t)}
		e.V4 = eni.Net{Primary: netip.MustParsePrefix("10.0.3.4/20"), Gateway: netip.MustParseAddr("10.0.0.1")}
		if rapid.Bool().Draw(t, "v6") {
			e.V6.Primary = netip.MustParsePrefix("2001:db8::4/64") // its gateway is heard on the link
		}
		s.ENIs = append(s.ENIs, e)
	}
	for _, p := range anyPrefixes(t) {
		s.Quarantined = append(s.Quarantined, order.Quarantined{Prefix: p, Until: time.Unix(1_800_000_000, 0)})
		s.Reserved = append(s.Reserved, order.Reserved{Addr: p.Addr(), Topology: "db", Namespace: "ns", Pod: "db-0", UID: "uid"})
	}
	tells := order.Tells{Observed: int64(anyNumber(t)), Reclaim: anyNumber(t), Tokens: anyWords(t)}
	for _, reason := range anyWords(t) {
		tells.Causes = append(tells.Causes, order.Cause{Reason: reason, Message: "why", Until: anyTime(t)})
	}
	return s, tells
}

// What one side writes the other reads.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, asks := anySpec(t)
		status, tells := anyStatus(t)
		n := &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid", ResourceVersion: "7", Generation: 3},
			Spec: ToSpec(spec, asks, crd.NodeNetworkSpec{}), Status: ToStatus(status, tells, crd.NodeNetworkStatus{})}
		got, err := Object(n)
		if err != nil {
			t.Fatal(err)
		}
		want := order.Object{Version: "7", UID: "uid", Generation: 3, View: order.View{Spec: spec, Status: status}, Asks: asks, Tells: tells}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
	})
}

// A part of a status would be taken for one of which the cloud has taken the rest.
func TestAStatusThatCantBeReadIsNone(t *testing.T) {
	for want, s := range map[string]crd.NodeNetworkStatus{
		"10.0.0":        {Releasing: []string{"10.0.0"}},
		"10.0.0.0/40":   {Quarantined: []crd.Quarantined{{Address: "10.0.0.0/40"}}},
		"unknown state": {ENIs: []crd.ENI{{ID: "eni-a", State: "Moving"}}},
		"no prefix":     {ENIs: []crd.ENI{{ID: "eni-a", State: "Attached", V4: &crd.Family{Primary: "no prefix"}}}},
	} {
		if _, err := Object(&crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: s}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A later release may have modes between the two sides: nobody calls then.
func TestAnUnknownModeIsToWait(t *testing.T) {
	status, _, err := Status(crd.NodeNetworkStatus{Mode: "Resting"})
	if err != nil || status.Mode != order.Joining {
		t.Errorf("%v, %v", status.Mode, err)
	}
	spec, _, err := Spec(crd.NodeNetworkSpec{Mode: "Resting", Families: []string{"IPv4"}})
	if err != nil || spec.Mode != order.Self {
		t.Errorf("%v, %v", spec.Mode, err)
	}
	if _, _, err := Spec(crd.NodeNetworkSpec{Families: []string{"IPv5"}}); err == nil {
		t.Error("IPv5 is read")
	}
}

// What pkg/order knows nothing of stays as it was.
func TestTheRestOfTheObjectStays(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	was := crd.NodeNetworkStatus{InstanceFacts: crd.InstanceFacts{Instance: "i-1", Zone: "a"}, DescribedAt: &at, Slots: 4,
		Conditions: []metav1.Condition{{Type: "Satisfied"}}, ENIs: []crd.ENI{{ID: "eni-a", Created: &at}}}
	s := ToStatus(order.Status{ENIs: []order.ENI{{ID: "eni-a", State: order.Attached}, {ID: "eni-b", State: order.Attached}}}, order.Tells{}, was)
	if s.Instance != "i-1" || s.Zone != "a" || s.DescribedAt != &at || s.Slots != 4 || len(s.Conditions) != 1 || s.ENIs[0].Created != &at || s.ENIs[1].Created != nil {
		t.Errorf("%+v", s)
	}
	wants := []crd.TopologyWant{{Name: "db", Slots: 3}}
	if spec := ToSpec(order.Spec{}, order.Asks{}, crd.NodeNetworkSpec{Topologies: wants}); len(spec.Topologies) != 1 {
		t.Errorf("%+v", spec)
	}
}
