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
	return rapid.SampledFrom([]netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 32), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, n, 16}), 28),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: n}), 128)}).Draw(t, "prefix")
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

// What an agent writes it reads: else it would write it again and again.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := pool.Config{Mode: pool.Mode(rapid.IntRange(0, 2).Draw(t, "mode")), FirstENI: anyNumber(t), MaxAllocate: anyNumber(t), MaxAllocateENI: anyNumber(t),
			MaxIPsPerENI: anyNumber(t), PreAllocateENI: anyNumber(t), TopologyPlaces: anyNumber(t), Multiple: anyNumber(t), Partial: rapid.Bool().Draw(t, "partial"),
			ReturnENIs: rapid.Bool().Draw(t, "return"), MinAllocate: anyNumber(t), PreAllocate: anyNumber(t), MaxAboveWatermark: anyNumber(t)}
		c.Scale.Batch = anyNumber(t)
		spec := order.Spec{Mode: rapid.SampledFrom([]order.Mode{order.Self, order.Operator}).Draw(t, "calls"), Families: []eni.Family{eni.IPv6, eni.IPv4},
			Slots: anyNumber(t), Waiting: anyNumber(t), Pool: c, Release: anyPrefixes(t), ReleaseInterfaces: anyWords(t),
			Held: anyPrefixes(t), NoLink: anyWords(t), Idle: anyWords(t), Boot: "boot", SeenRevision: int64(anyNumber(t))}
		asks := order.Asks{WaitingSince: anyTime(t), IdleSlots: anyNumber(t), SeenReclaim: anyNumber(t), Handover: &order.Handover{Tokens: anyWords(t), Release: anyPrefixes(t), ReleaseInterfaces: anyWords(t)}}
		for _, id := range anyWords(t) {
			if asks.IdleIn == nil {
				asks.IdleIn = map[string]int{}
			}
			asks.IdleIn[id] = anyNumber(t)
		}
		if rapid.Bool().Draw(t, "never called") {
			asks.Handover = nil
		}
		n := &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid", ResourceVersion: "7", Generation: 3}, Spec: ToSpec(spec, asks, crd.NodeNetworkSpec{})}
		got, err := Object(n)
		if err != nil {
			t.Fatal(err)
		}
		want := order.Object{Version: "7", UID: "uid", Generation: 3, View: order.View{Spec: spec}, Asks: asks}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
	})
}

func TestWhatTheOperatorTellsPeopleIsRead(t *testing.T) {
	until := metav1.NewTime(time.Unix(1_800_000_000, 0))
	s := crd.NodeNetworkStatus{ObservedGeneration: 4, Reclaim: 2, ReclaimIn: []string{"subnet-a"}, Handover: &crd.StatusHandover{Tokens: []string{"token"}},
		Causes: []crd.Cause{{Reason: "SubnetFull", Message: "why", Until: &until}, {Reason: "Forbidden"}}}
	got, err := Object(&crd.NodeNetwork{Status: s})
	want := order.Tells{Observed: 4, Reclaim: 2, ReclaimIn: []string{"subnet-a"}, Tokens: []string{"token"}, Causes: []order.Cause{{Reason: "SubnetFull", Message: "why", Until: until.Time}, {Reason: "Forbidden"}}}
	if diff := cmp.Diff(want, got.Tells, same); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
}

// A part of a status would be taken for one of which the cloud has taken the rest.
func TestAnObjectThatCantBeReadIsNone(t *testing.T) {
	for want, n := range map[string]crd.NodeNetwork{
		"10.0.0":   {Status: crd.NodeNetworkStatus{Releasing: []string{"10.0.0"}}},
		"ten":      {Status: crd.NodeNetworkStatus{ENIs: []crd.ENI{{ID: "eni-a", Addresses: []string{"ten"}}}}},
		"handover": {Spec: crd.NodeNetworkSpec{Handover: &crd.Handover{Release: []string{"ten"}}}},
	} {
		if _, err := Object(&n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A later release may have modes between the two sides: nobody calls then.
func TestAnUnknownModeIsToWait(t *testing.T) {
	n := &crd.NodeNetwork{Status: crd.NodeNetworkStatus{Mode: "Resting"}}
	got, err := Object(n)
	if err != nil || got.Status.Mode != order.Joining || n.Status.Mode != "Resting" {
		t.Errorf("%v, %v", got.Status.Mode, err)
	}
}

// What the agent knows nothing of stays as it was.
func TestTheRestOfTheSpecStays(t *testing.T) {
	was := crd.NodeNetworkSpec{Topologies: []crd.TopologyWant{{Name: "db", Slots: 3}}, Slots: 4, Handover: &crd.Handover{}}
	if spec := ToSpec(order.Spec{Slots: 7}, order.Asks{}, was); len(spec.Topologies) != 1 || spec.Slots != 7 || spec.Handover != nil {
		t.Errorf("%+v", spec)
	}
}
