package claims

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// claimOf returns the claim of db-0, in a version.
func claimOf(uid, version, phase string) *crd.AddressClaim {
	return &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.9", UID: types.UID(uid), ResourceVersion: version},
		Spec:   crd.ClaimSpec{Topology: "t", Subnet: "s", Address: "10.0.0.9", Namespace: "db", Pod: "db-0", Keep: "Workload", Workload: &crd.Workload{Kind: "StatefulSet", Name: "db", UID: "1"}},
		Status: crd.ClaimStatus{Phase: phase}}
}

func knownWith(t *testing.T, events ...Event) *Known {
	t.Helper()
	k := New([]eni.Family{eni.IPv4}, 10*time.Second)
	for _, e := range events {
		if err := k.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// What the watch tells may be older than the answer of a write, or of an object that is gone.
func TestAnOlderCopyOfAClaimChangesNothing(t *testing.T) {
	k := knownWith(t, Event{Claim: claimOf("a", "10", "Bound")}, Event{Claim: claimOf("a", "9", "Free")})
	at := netip.MustParseAddr("10.0.0.9")
	if k.claims[at].Phase != topology.Bound {
		t.Errorf("an older copy counts: %+v", k.claims[at].Claim)
	}
	k = knownWith(t, Event{Claim: claimOf("a", "10", "Bound")}, Event{Claim: claimOf("a", "11", "Bound"), Deleted: true}, Event{Claim: claimOf("a", "9", "Free")})
	if k.Object(at) != nil {
		t.Error("one that is gone is there again")
	}
	if err := k.Take(Event{Claim: claimOf("b", "12", "Free")}); err != nil || k.Object(at) == nil {
		t.Errorf("another one of the name is not there: %v", err)
	}
	if err := k.Take(Event{Claim: claimOf("b", "13", "Later")}); err == nil || k.Object(at) != nil || !k.IsKept(at) {
		t.Errorf("one that can't be read: %v, kept %v", err, k.IsKept(at))
	}
}

// One list may have missed a pod or a StatefulSet.
func TestWhatOneListLacksIsNotAbsent(t *testing.T) {
	none := []Pod{}
	k := knownWith(t, Event{Complete: true}, Event{Pods: &none}, Event{Claim: claimOf("a", "1", "Free")})
	of := Name{"db", "db-0"}
	if k.podFacts(of, netip.Addr{}).Presence != topology.Unknown {
		t.Error("a pod is absent by one list")
	}
	if k = knownWith(t, Event{Pods: &none}, Event{Pods: &none}, Event{Claim: claimOf("a", "1", "Free")}); k.podFacts(of, netip.Addr{}).Presence != topology.Absent {
		t.Error("a pod is not absent by two lists")
	}
	claim := k.claims[netip.MustParseAddr("10.0.0.9")].Claim
	claim.FreeSince = noon.Add(-time.Minute)
	for i, want := range []topology.Presence{topology.Unknown, topology.Unknown, topology.Absent} {
		if k.TakeSets(nil, noon.Add(time.Duration(i)*5*time.Second)); k.setFacts(claim) != want {
			t.Errorf("after %d lists: %v", i+1, k.setFacts(claim))
		}
	}
	// It may have been made again since those lists, and have replaced its pod.
	for _, ends := range []time.Time{noon.Add(10 * time.Second), {}} {
		if claim.FreeSince = ends; k.setFacts(claim) != topology.Unknown {
			t.Errorf("a list from before the end of the pod at %s counts: %v", ends, k.setFacts(claim))
		}
	}
	if k.TakeSets([]Name{{"db", "db"}}, noon.Add(time.Minute)); k.setFacts(claim) != topology.Present {
		t.Error("it is there again")
	}
	if k.TakeSets(nil, noon.Add(2*time.Minute)); k.setFacts(claim) != topology.Unknown {
		t.Error("one list counts")
	}
}

// Before an address is taken without its agent's word a read has to say of the pod what the watch has said.
func TestAReadThatSaysSomethingElseCountsForNothing(t *testing.T) {
	p := Pod{Name: Name{"db", "db-0"}, UID: "2", Node: "b", Topology: "t"}
	k := knownWith(t, Event{Pod: &p})
	other := p
	other.UID = "3"
	if k.NoteRead(p.Name, &other, noon) || k.NoteRead(p.Name, nil, noon) || k.NoteRead(Name{"db", "db-1"}, &other, noon) {
		t.Error("it counts")
	}
	if !k.NoteRead(p.Name, &p, noon) || !k.NoteRead(Name{"db", "db-1"}, nil, noon) {
		t.Error("what both say does not count")
	}
}

// As long as not all claims are known nothing follows: a node's status stays as it is, and what claims may keep too.
func TestNothingFollowsOfHalfOfIt(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.9")
	k := knownWith(t, Event{Claim: claimOf("a", "1", "Bound")})
	k.SetNode(Node{Name: "n", Told: true, ENIs: []ENI{{ID: "e", Addresses: []netip.Addr{at}}}, Reserved: []order.Reserved{{Addr: at, Pod: "db-0"}}})
	if s := k.Decide(noon, true); len(s.Nodes)+len(s.Writes) > 0 || !k.IsKept(netip.MustParseAddr("10.0.0.1")) {
		t.Errorf("%+v", s)
	}
	none := []Pod{}
	for _, e := range []Event{{Complete: true}, {Pods: &none}} {
		if err := k.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	s := k.Decide(noon, true)
	if _, is := s.Nodes["n"]; !is || len(s.Nodes["n"].Reserved) != 1 || k.IsKept(netip.MustParseAddr("10.0.0.1")) {
		t.Errorf("%+v", s)
	}
}

// A leader before may have brought an Elastic address that no describe of this one has shown yet. Nobody would give it back if it were not kept until then.
func TestAnElasticAddressIsKeptUntilItsNodeIsDescribed(t *testing.T) {
	none := []Pod{}
	k := knownWith(t, Event{Complete: true}, Event{Pods: &none}, Event{Pods: &none})
	kept := []order.Reserved{{Addr: netip.MustParseAddr("10.0.0.9"), Topology: "t", Namespace: "db", Pod: "x-0", UID: "1"}}
	for _, told := range []bool{false, true} {
		k.SetNode(Node{Name: "n", Told: told, Serves: true, Reserved: kept})
		if is := k.Decide(noon, told).Nodes["n"]; len(is.Reserved) > 0 == told || len(is.Seize) > 0 != told {
			t.Errorf("described %v: %+v", told, is)
		}
	}
}

// A tool that puts a backup back makes claims before the StatefulSets that they are of, by their names. One whose StatefulSet takes longer than the lists wait
// ends: the page of topologies has no operator run until all is back. It stays when its StatefulSet, with another uid, is there in time.
func TestAClaimOfABackupNeedsItsStatefulSetInTime(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.9")
	for _, back := range []bool{false, true} {
		none := []Pod{}
		k := knownWith(t, Event{Complete: true}, Event{Pods: &none}, Event{Pods: &none}, Event{Claim: claimOf("a", "1", "")})
		first := k.Decide(noon, true)
		if len(first.Writes) != 1 || first.Writes[0].Status.Phase != topology.Free || !first.Sets {
			t.Fatalf("at first: %+v", first)
		}
		written := claimOf("a", "2", "Free")
		written.Status.FreeSince = &metav1.Time{Time: noon}
		if err := k.Take(Event{Claim: written}); err != nil {
			t.Fatal(err)
		}
		k.TakeSets(nil, noon.Add(time.Second))
		if back {
			k.TakeSets([]Name{{"db", "db"}}, noon.Add(20*time.Second))
		}
		k.TakeSets(map[bool][]Name{true: {{"db", "db"}}}[back], noon.Add(31*time.Second))
		last := k.Decide(noon.Add(time.Minute), true)
		if ends := len(last.Writes) == 1 && last.Writes[0].Addr == at && last.Writes[0].Status.Phase == topology.Releasing; ends == back {
			t.Errorf("its StatefulSet is back in time: %v, and then %+v", back, last.Writes)
		}
	}
}
