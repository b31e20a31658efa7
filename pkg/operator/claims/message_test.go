package claims

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is longer than the schema takes is cut, and then it is as written: it is not written again and again.
func TestALongMessageIsWrittenOnce(t *testing.T) {
	k, now := New([]eni.Family{eni.IPv4}, time.Second), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := netip.MustParseAddr("10.0.0.16")
	object := &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.16", UID: "c", ResourceVersion: "1"}, Spec: crd.ClaimSpec{Topology: "t", Subnet: "a", Address: "10.0.0.16", Namespace: "db", Pod: "db-0",
		Keep: "Workload", Workload: &crd.Workload{Kind: "StatefulSet", Name: "db", UID: "s"}}, Status: crd.ClaimStatus{Phase: "Conflict", PodUID: "p"}}
	none := []Pod{{Name: Name{"db", "db-0"}, UID: "p", Node: "n", Topology: "t"}}
	for _, e := range []Event{{Claim: object}, {Pods: &none}, {Pods: &none}, {Complete: true}} {
		if err := k.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	k.SetNode(Node{Name: "n", Told: true, Serves: true})
	k.NoteRefused(at, now, strings.Repeat("ä", 200))
	writes := k.Decide(now, true).Writes
	if len(writes) != 1 || len(writes[0].Message) > mostMessage || strings.Contains(writes[0].Message, "\uFFFD") {
		t.Fatalf("%+v", writes)
	}
	next := object.DeepCopy()
	next.ResourceVersion = "2"
	next.Status.Write(writes[0].Status)
	next.Status.Message = writes[0].Message
	if err := k.Take(Event{Claim: next}); err != nil {
		t.Fatal(err)
	}
	if again := k.Decide(now, true).Writes; len(again) > 0 {
		t.Errorf("it is written again: %+v", again)
	}
}
