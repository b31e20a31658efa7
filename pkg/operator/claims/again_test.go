package claims

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A topology that is deleted and made again as an Elastic one leaves the claims that there are. A pod of such a claim has that address, and no second one.
func TestAPodWithAClaimGetsNoElasticAddress(t *testing.T) {
	k := elasticOf(t, 0, Node{ENIs: []ENI{{ID: "eni-1", Subnet: "s", Room: map[eni.Family]int{eni.IPv4: 9}}}}, v4, "db-0")
	if err := k.Take(Event{Claim: claimOf("a", "1", "Free")}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s := k.Decide(noon, true)
		if n := s.Nodes["n"]; len(n.Assign["eni-1"]) > 0 && n.Assign["eni-1"][0] != netip.MustParseAddr("10.0.0.9") || len(k.elastic) > 0 {
			t.Fatalf("a second address: %+v, %v", n.Assign, k.elastic)
		}
		for _, w := range s.Writes {
			next := k.Object(w.Addr).DeepCopy()
			next.Status.Write(w.Status)
			next.ResourceVersion += "0"
			if err := k.Take(Event{Claim: next}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The address of a pod's other family is of the subnet that the first one is of, wherever that stands: on one ENI they can be together.
func TestBothFamiliesAreOfOneSubnet(t *testing.T) {
	room := map[eni.Family]int{eni.IPv4: 9, eni.IPv6: 9}
	k := elasticOf(t, 0, Node{ENIs: []ENI{{ID: "eni-1", Subnet: "s", Room: room}, {ID: "eni-2", Subnet: "s2", Room: room}}}, both, "db-0")
	of := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "s"}, {ID: "s2"}}, Strategy: crd.Strategy{Type: "Sticky", TTL: "1h"}}}
	claim := claimOf("a", "1", "Free")
	claim.Name, claim.Spec.Subnet, claim.Spec.Address, claim.Spec.Keep, claim.Spec.TTL, claim.Spec.Workload = "10.0.1.9", "s2", "10.0.1.9", "TTL", "1h", nil
	for _, e := range []Event{{Topology: of}, {Claim: claim}} {
		if err := k.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	k.SetSubnets([]topology.Subnet{
		{ID: "s", Zone: "z", V4: netip.MustParsePrefix("10.0.0.0/24"), V6: netip.MustParsePrefix("2001:db8::/64"), Ready: true, Exclusive: true, KeptFirst: 4, KeptLast: 1},
		{ID: "s2", Zone: "z", V4: netip.MustParsePrefix("10.0.1.0/24"), V6: netip.MustParsePrefix("2001:db8:1::/64"), Ready: true, Exclusive: true, KeptFirst: 4, KeptLast: 1}})
	s := k.Decide(noon, true)
	if len(s.Creates) != 1 || s.Creates[0].Subnet != "s2" {
		t.Errorf("the pod has 10.0.1.9 of s2, and is to get %+v", s.Creates)
	}
}

// A leader whose clock was ahead wrote when a claim's pod had ended. The claim ends its time after that was read by a clock that is right, not years later.
func TestAClaimEndsThoughAClockWasAhead(t *testing.T) {
	c := topology.Claim{Addr: netip.MustParseAddr("10.0.0.9"), Namespace: "db", Pod: "db-0", Keep: topology.Sticky, TTL: time.Hour,
		Status: topology.Status{Phase: topology.Free, FreeSince: noon.Add(10 * 365 * 24 * time.Hour)}}
	f := topology.Facts{Pod: topology.PodFacts{Presence: topology.Absent}, At: topology.Attachment{Known: true}}
	c = topology.Next(c, f, noon).Claim
	if c = topology.Next(c, f, noon.Add(time.Hour)).Claim; c.Phase != topology.Releasing {
		t.Errorf("%+v", c.Status)
	}
}

// What lists lacked of a StatefulSet of before says nothing of the next one of its name, which no list has shown since there was nothing to ask.
func TestListsOfBeforeSayNothingOfTheNextStatefulSet(t *testing.T) {
	k := knownWith(t, Event{Claim: claimOf("a", "1", "Free")})
	k.TakeSets(nil, noon)
	k.TakeSets(nil, noon.Add(time.Minute))
	if err := k.Take(Event{Claim: claimOf("a", "2", "Free"), Deleted: true}); err != nil {
		t.Fatal(err)
	}
	if err := k.Take(Event{Claim: claimOf("b", "3", "Free")}); err != nil {
		t.Fatal(err)
	}
	claim := k.claims[netip.MustParseAddr("10.0.0.9")].Claim
	claim.FreeSince = noon.Add(time.Hour)
	if k.TakeSets(nil, noon.Add(2*time.Hour)); k.setFacts(claim) != topology.Unknown {
		t.Error("one list counts")
	}
}
