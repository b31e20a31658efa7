package claims

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/topology"
)

// People may make a claim of an address that a pod has. Nothing is taken from under that pod before its agent has said a word.
func TestAnAddressThatAPodShowsIsNotTakenWithoutAWord(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.9")
	for shown, want := range map[netip.Addr]int{at: 0, netip.MustParseAddr("10.0.0.8"): 1} {
		k := New(v4, 10*time.Second)
		claim := claimOf("a", "1", "Moving")
		claim.Status.To, claim.Status.PodUID = "n2", "u-0"
		pods := []Pod{{Name: Name{"db", "db-0"}, UID: "u-0", Node: "n2", Topology: "t"}, {Name: Name{"db", "other"}, UID: "u-1", Node: "n", Topology: "e", V4: shown}}
		for _, e := range []Event{{Claim: claim}, {Pods: &pods}, {Pods: &pods}, {Complete: true}} {
			if err := k.Take(e); err != nil {
				t.Fatal(err)
			}
		}
		k.SetSubnets([]topology.Subnet{{ID: "s", Zone: "z", V4: netip.MustParsePrefix("10.0.0.0/24"), Ready: true}})
		room := map[eni.Family]int{eni.IPv4: 9}
		k.SetNode(Node{Name: "n", Zone: "z", Told: true, Serves: true, ENIs: []ENI{{ID: "eni-1", Subnet: "s", Room: room, Addresses: []netip.Addr{at}}}, Releasing: map[netip.Addr]bool{at: true}})
		k.SetNode(Node{Name: "n2", Zone: "z", Told: true, Serves: true, ENIs: []ENI{{ID: "eni-2", Subnet: "s", Room: room}}})
		var took []netip.Addr
		for i := range 3 {
			now := noon.Add(time.Duration(i) * time.Minute)
			s := k.Decide(now, true)
			for _, of := range s.Reads {
				k.NoteRead(of, &pods[0], now)
			}
			took = s.Nodes["n"].Take["eni-1"]
		}
		if len(took) != want {
			t.Errorf("a pod there shows %s: took %v", shown, took)
		}
	}
}
